package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// listed serves a tree with listings of each kind.
func listed(t *testing.T) *site {
	t.Helper()
	s := serve(t, with(server(`
		root html;
		autoindex on;
		location /off/ { autoindex off; alias html/d/; }
		location /json/ { autoindex_format JSON; alias html/d/; }
		location /jsonp/ { autoindex_format jsonp; alias html/d/; }
		location /xml/ { autoindex_format xml; alias html/d/; location /xml/html/ { autoindex_format html; alias html/d/; } }
		location /utf8/ { charset $arg_charset; alias html/é/; }
		location /json8/ { charset utf-8; charset_types application/json; autoindex_format json; alias html/d/; }
		location /rounded/ { autoindex_exact_size off; alias html/big/; location /rounded/exact/ { autoindex_exact_size on; alias html/big/; } }
		location /local/ { autoindex_localtime on; alias html/d/; location /local/gmt/ { autoindex_localtime off; alias html/d/; } }
		location /noslash/ { alias html/d; }
		location /up/ { root html/$arg_d; }
		location /error/ { error_page 404 /d/; return 404; }
		location /sub/ { sub_filter Index List; alias html/d/; }`),
		"secret", "secret", "html/d/f", "12345", "html/d/.hidden", "", "html/indexed/index.html", "the index", "html/é/é", "", "html/big/f", strings.Repeat("x", 12345), "html/up/x", "x"))
	for _, name := range []string{"d/f", "d", "é/é", "big/f"} {
		when := time.Date(2024, 7, 1, 22, 30, 5, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(s.dir, "html", name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestAutoindex(t *testing.T) {
	s := listed(t)
	const page = `<h1>Index of %</h1><hr><pre><a href="../">../</a>` + "\r\n" + `<a href="f">f</a>                                                  01-Jul-2024 22:30                   5` + "\r\n</pre>"
	at := func(uri string) string { return strings.Replace(page, "%", uri, 1) }
	const array = "[\r\n" + `{ "name":"f", "type":"file", "mtime":"Mon, 01 Jul 2024 22:30:05 GMT", "size":5 }` + "\r\n]"
	tests := []struct {
		method, target string
		status         int
		kind, part     string
	}{
		{"GET", "/d/", 200, "text/html", at("/d/")},
		{"GET", "/d", 301, "text/html", ""},
		{"HEAD", "/d/", 200, "text/html", ""},
		{"POST", "/d/", 403, "text/html", "403 Forbidden"},
		{"PUT", "/d/", 405, "text/html", ""},
		{"GET", "/", 200, "text/html", `<a href="%C3%A9/">`},
		{"GET", "/indexed/", 200, "text/html", "the index"},
		{"GET", "/none/", 404, "text/html", "404 Not Found"},
		{"GET", "/d/f/", 404, "text/html", "404 Not Found"},
		{"GET", "/off/", 403, "text/html", "403 Forbidden"},
		{"GET", "/json/", 200, "application/json", array},
		{"GET", "/json/?callback=f", 200, "application/json", array},
		{"GET", "/json8/", 200, "application/json; charset=utf-8", array},
		{"GET", "/jsonp/", 200, "application/json", array},
		{"GET", "/jsonp/?callback=", 200, "application/json", array},
		{"GET", "/jsonp/?callback=a.B_9", 200, "application/javascript", "/* callback */\r\na.B_9(" + array + ");"},
		{"GET", "/jsonp/?callback=a-b", 400, "text/html", "400 Bad Request"},
		{"GET", "/jsonp/?callback=a%28", 400, "text/html", "400 Bad Request"},
		{"GET", "/jsonp/?callback=" + strings.Repeat("f", 128), 200, "application/javascript", "f(["},
		{"GET", "/jsonp/?callback=" + strings.Repeat("f", 129), 400, "text/html", "400 Bad Request"},
		{"GET", "/xml/", 200, "text/xml; charset=utf-8", `<file mtime="2024-07-01T22:30:05Z" size="5">f</file>`},
		{"GET", "/xml/html/", 200, "text/html", at("/xml/html/")},
		{"GET", "/utf8/?charset=UTF-8", 200, "text/html; charset=UTF-8", "é</a>" + strings.Repeat(" ", 50)},
		{"GET", "/utf8/?charset=koi8-r", 200, "text/html; charset=koi8-r", "é</a>" + strings.Repeat(" ", 49) + "0"},
		{"GET", "/rounded/", 200, "text/html", "22:30     12K\r\n"},
		{"GET", "/rounded/exact/", 200, "text/html", "22:30               12345\r\n"},
		{"GET", "/noslash/", 404, "text/html", "404 Not Found"},
		{"GET", "/up/?d=..", 404, "text/html", "404 Not Found"},
		{"GET", "/d/../../", 400, "text/html", ""},
		{"GET", "/d/%2e%2e/%2e%2e/", 400, "text/html", ""},
		{"GET", "/error/", 404, "text/html", at("/d/")},
		{"GET", "/sub/", 200, "text/html", "<h1>Index of /sub/"},
	}
	for _, tt := range tests {
		about := tt.method + " " + tt.target
		got := s.request(tt.method, tt.target)
		equal(t, about+" status", got.StatusCode, tt.status)
		equal(t, about+" type", got.Header.Get("Content-Type"), tt.kind)
		if !strings.Contains(got.body, tt.part) {
			t.Errorf("%s: no %q in %q", about, tt.part, got.body)
		}
		if strings.Contains(got.body, "hidden") || strings.Contains(got.body, "secret") {
			t.Errorf("%s: what is not to be seen is: %q", about, got.body)
		}
	}
}

// A listing has no length, time or tag, as in nginx: it is sent in chunks, and a condition on its
// time or tag fails.
func TestAutoindexHead(t *testing.T) {
	s := listed(t)
	got := s.get("/d/")
	equal(t, "coding", strings.Join(got.TransferEncoding, ","), "chunked")
	for _, name := range []string{"Content-Length", "Last-Modified", "Etag", "Accept-Ranges"} {
		equal(t, name, got.Header.Get(name), "")
	}
	equal(t, "HEAD", s.request("HEAD", "/d/").Header.Get("Content-Length"), "")
	for field, status := range map[string]int{
		"Range: bytes=0-3": 200, "If-Match: *": 200, `If-Match: "x"`: 412, `If-None-Match: "x"`: 200, "If-None-Match: *": 304,
		"If-Modified-Since: Mon, 01 Jul 2024 22:30:05 GMT": 200, "If-Unmodified-Since: Mon, 01 Jul 2040 22:30:05 GMT": 412,
	} {
		equal(t, field, s.get("/d/", field).StatusCode, status)
	}
	equal(t, "in place of an error", s.get("/error/", `If-Match: "x"`).StatusCode, 404)
	equal(t, "no type without content", s.get("/d/", "If-None-Match: *").Header.Get("Content-Type"), "")
}

// Local times are those of the process's zone, which is chosen before the process starts: the
// test runs itself again.
func TestAutoindexLocaltime(t *testing.T) {
	const zone = "TZ=Asia/Kolkata"
	if !slices.Contains(os.Environ(), zone) {
		again := exec.Command(os.Args[0], "-test.run=^TestAutoindexLocaltime$")
		again.Env = append(os.Environ(), zone)
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	s := listed(t)
	for target, want := range map[string]string{"/local/": " 02-Jul-2024 04:00 ", "/local/gmt/": " 01-Jul-2024 22:30 "} {
		if got := s.get(target).body; !strings.Contains(got, want) {
			t.Errorf("%s: no %q in %s", target, want, got)
		}
	}
}

func TestAutoindexLog(t *testing.T) {
	s := serve(t, with(server(`root html; autoindex on; error_log stderr info; location /jsonp/ { autoindex_format jsonp; alias html/; } location /noslash/ { alias html; }`), "html/f", ""))
	for target, want := range map[string]string{
		"/none/":             `open() "` + s.dir + `/html/none" failed (2: No such file or directory)`,
		"/noslash/":          `opendir() "` + s.dir + `/html" failed (2: No such file or directory)`,
		"/jsonp/?callback=-": `client sent invalid callback name: "-"`,
		"/jsonp/?callback=" + strings.Repeat("x", 129): `client sent too long callback name: "xxx`,
	} {
		s.get(target)
		if !strings.Contains(s.errors.String(), want) {
			t.Errorf("%s: no %s in\n%s", target, want, s.errors)
		}
	}
}

func TestBadAutoindex(t *testing.T) {
	for text, want := range map[string]string{
		"autoindex maybe;":                                `invalid value "maybe" in "autoindex" directive, it must be "on" or "off"`,
		"autoindex on; autoindex off;":                    `"autoindex" directive is duplicate`,
		"autoindex_format yaml;":                          `invalid value "yaml"`,
		"autoindex_format;":                               `invalid number of arguments in "autoindex_format" directive`,
		"autoindex_exact_size 1;":                         `invalid value "1" in "autoindex_exact_size" directive, it must be "on" or "off"`,
		"autoindex_localtime on; autoindex_localtime on;": `"autoindex_localtime" directive is duplicate`,
	} {
		if _, err := load(t, server(text)); err == nil || !strings.HasPrefix(err.Error(), want+" in ") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
