package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const autoindexConf = `http { access_log off;
autoindex on;
server { listen {{LISTEN}}; root html;
  location /off/ { autoindex off; alias html/tree/; }
  location /noslash/ { alias html/tree/sub; }
  location ~ ^/re/(.*)$ { alias html/tree/$1; }
  location ~ ^/renoslash/ { alias html/tree/sub; }
  location /exact/ { alias html/sizes/; }
  location /rounded/ { autoindex_exact_size off; alias html/; }
  location /local/ { autoindex_localtime on; alias html/times/; location /local/json/ { autoindex_format json; alias html/times/; } }
  location /utf8/ { charset utf-8; alias html/tree/; }
  location /latin/ { charset iso-8859-1; alias html/tree/; }
  location /variable/ { charset $arg_charset; alias html/tree/; }
  location /json/ { autoindex_format JSON; charset utf-8; alias html/; }
  location /json8/ { autoindex_format json; charset utf-8; charset_types application/json; alias html/tree/; }
  location /jsonp/ { autoindex_format jsonp; autoindex_exact_size off; alias html/tree/sub/; }
  location /jsonp8/ { autoindex_format jsonp; charset utf-8; alias html/tree/sub/; }
  location /xml/ { autoindex_format xml; alias html/; }
  location /xmlcharset/ { autoindex_format xml; charset koi8-r; autoindex_localtime on; alias html/times/; }
  location /gzip/ { gzip on; gzip_types text/xml; alias html/tree/; location /gzip/xml/ { autoindex_format xml; alias html/tree/; } }
  location /sub/ { sub_filter 'Index of' 'What is in'; alias html/tree/sub/; }
  location /try/ { try_files $uri $uri/ =404; alias html/tree/; }
  location /tryroot/ { root html/try; try_files $uri $uri/ =404; }
  location /headers/ { add_header X-Own yes; expires 1h; alias html/tree/sub/; }
  location /error/ { error_page 403 404 /tree/sub/; return 404; }
  location /coded/ { error_page 404 =200 /tree/sub/; return 404; }
  location /if/ { if ($arg_json) { set $x 1; } alias html/tree/sub/; }
  location /rewrite/ { rewrite ^ /tree/sub/; }
} }
`

// oddNames are those whose escapes and columns differ from format to format.
var oddNames = func() []string {
	names := []string{"a b.txt", "a&b", "<tag>", "what?", "100%", "%41", `quo"te'`, "naïve-ü.txt", "日本語", "😀", `back\slash`, "new\nline", "tab\t\r\b\f", "ctl\x01\x1f\x7f", "colon:name",
		"semi;co,lon+plus=@!$()*~[]{}|^`", "#hash", "-dash", "_under", "UPPER", "lower", "10", "9", "é\xc3", "\xe9t\xe9", "\xe9\xe8\xea.txt", "\xed\xa0\x80x", "\xc0\xafx", "\xf4\x90\x80\x80x", "\xf5\x80\x80\x80x", "\xc3\xff",
		".hidden", "..two", "...", strings.Repeat("w", 255), strings.Repeat("é", 127), strings.Repeat("日", 48), strings.Repeat("\xe9", 60), strings.Repeat("é", 30) + strings.Repeat("\xff", 30)}
	for _, n := range []int{46, 47, 48, 49, 50, 51, 52, 60} {
		names = append(names, strings.Repeat("n", n), strings.Repeat("&", n), strings.Repeat("ü", n), strings.Repeat("<ä", n/2)+strings.Repeat("x", n%2), strings.Repeat("a", n-1)+"é", "<"+strings.Repeat("\xfc", n-1))
	}
	return names
}()

// sizes are those around which rounding goes from one to the next.
var autoindexSizes = []int64{0, 1, 1023, 1024, 9999, 10000, 10239, 10240, 10751, 10752, 1<<20 - 513, 1<<20 - 512, 1<<20 - 1, 1 << 20, 1<<20 + 1<<19 - 1, 1<<20 + 1<<19, 1<<30 - 1, 1 << 30, 1<<30 + 1<<29 - 1, 1<<30 + 1<<29, 20 << 30}

var autoindexTimes = []string{"1960-05-01T01:02:03Z", "1970-01-01T00:00:00Z", "2023-01-31T23:59:59Z", "2024-02-29T00:00:00Z", "2024-07-01T22:30:00Z", "2024-12-31T23:30:59Z", "2040-01-01T12:00:00Z"}

// growTree makes what lists of files can't: empty folders, odd names, links, pipes, large files,
// and times.
func growTree(t *testing.T, dir string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, "html", name) }
	var faults []error
	for _, name := range oddNames {
		faults = append(faults, os.WriteFile(at("tree/"+name), []byte(name), 0o644), os.Mkdir(at("folders/"+name), 0o755))
	}
	faults = append(faults, os.MkdirAll(at("tree/empty"), 0o755), os.MkdirAll(at("tree/<&\"> é%41"), 0o755), syscall.Mkfifo(at("tree/pipe"), 0o644))
	for link, to := range map[string]string{"to a folder": "sub", "to a file": "sub/inside", "outside": "../../nginx.conf", "to nowhere": "none", "to itself": "to itself", "to a pipe": "pipe"} {
		faults = append(faults, os.Symlink(to, at("tree/"+link)))
	}
	faults = append(faults, os.Symlink("file/x", at("through/link")))
	for _, size := range autoindexSizes {
		name := at(fmt.Sprintf("sizes/%d", size))
		faults = append(faults, os.WriteFile(name, nil, 0o644), os.Truncate(name, size))
	}
	for _, name := range autoindexTimes {
		faults = append(faults, os.WriteFile(at("times/"+name), nil, 0o644))
	}
	faults = append(faults, setTimes(at("")))
	for _, name := range autoindexTimes {
		when, err := time.Parse(time.RFC3339, name)
		faults = append(faults, err, os.Chtimes(at("times/"+name), when, when))
	}
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
}

// setTimes gives everything below dir one time, links too, which package os would follow.
func setTimes(dir string) error {
	var names []string
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	return errors.Join(err, exec.Command("touch", append([]string{"-h", "-d", "@1700000000", "--"}, names...)...).Run())
}

var autoindexFiles = map[string]string{
	"html/tree/sub/inside": "inside", "html/tree/sub/second": "", "html/tree/indexed/index.html": "the index", "html/try/tryroot/d/x": "x",
	"html/folders/x": "x", "html/sizes/x": "x", "html/times/x": "x", "html/tree/.folder/x": "x", "html/through/file": "x",
}

var autoindexSteps = func() []step {
	steps := gets("/", "/tree/", "/tree", "/tree/sub/", "/tree/empty/", "/tree/indexed/", "/tree/sub/inside", "/tree/sub/inside/", "/missing/", "/tree/.folder/", "/tree/to%20a%20folder/", "/tree/to%20a%20file/",
		"/tree/to%20nowhere/", "/tree/pipe/", "/tree/to%20itself/", "/tree/to%20itself", "/tree/"+strings.Repeat("x", 300)+"/", "/tree/%3C%26%22%3E%20%C3%A9%2541/", "/tree/../tree/sub/?a=b", "//tree//sub//", "/folders/", "/off/", "/off/sub/", "/noslash/", "/re/", "/re/sub/", "/re/none/", "/renoslash/",
		"/exact/", "/rounded/sizes/", "/rounded/tree/", "/local/", "/local/json/", "/utf8/", "/latin/", "/variable/?charset=utf-8", "/variable/?charset=UTF-8", "/variable/?charset=koi8-r", "/json/", "/json/tree/", "/json/folders/", "/json/sizes/", "/json/times/", "/json/tree/empty/", "/json8/",
		"/jsonp/", "/jsonp8/", "/jsonp8/?callback=f", "/xml/", "/xml/tree/", "/xml/folders/", "/xml/sizes/", "/xml/times/", "/xml/tree/empty/", "/xmlcharset/", "/sub/", "/try/", "/try/sub/", "/try/sub", "/try/none/",
		"/tryroot/", "/tryroot/d/", "/tryroot/d", "/headers/", "/error/", "/coded/", "/if/?json=1", "/rewrite/", "/times/", "/through/")
	for _, target := range []string{"/tree/", "/json/tree/", "/jsonp/?callback=f", "/xml/", "/utf8/", "/tree/indexed/", "/gzip/"} {
		for _, method := range []string{"HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			steps = append(steps, step{name: method + " " + target, raw: request(method, target, "", "Content-Length: 0"), methods: []string{method}})
		}
	}
	for _, line := range []string{"Range: bytes=0-3", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT", "If-Unmodified-Since: Tue, 14 Nov 2023 22:13:20 GMT", "If-Unmodified-Since: soon", "If-Match: *", "If-Match: \"x\"", "If-Match: ,", "If-None-Match: *", "If-None-Match: \"x\"",
		"If-None-Match: *\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT", "Accept-Encoding: gzip"} {
		for _, target := range []string{"/tree/sub/", "/json/tree/sub/", "/error/"} {
			steps = append(steps, step{name: target + " " + line, raw: get(target, line)})
		}
	}
	return append(append(steps, callbackSteps()...),
		step{name: "gzip", raw: get("/gzip/", "Accept-Encoding: gzip")},
		step{name: "gzip of XML", raw: get("/gzip/xml/", "Accept-Encoding: gzip")},
		step{name: "gzip of little", raw: get("/gzip/empty/", "Accept-Encoding: gzip")},
		step{name: "HTTP/1.0", raw: "GET /tree/ HTTP/1.0\r\n\r\n"},
		step{name: "little in HTTP/1.0", raw: "GET /tree/empty/ HTTP/1.0\r\n\r\n"},
		step{name: "a GET with a body", raw: request("GET", "/tree/sub/", "hello", "Content-Length: 5") + get("/tree/sub/"), methods: []string{"GET", "GET"}},
		step{name: "pipelined", raw: get("/tree/") + request("HEAD", "/json/", "") + get("/xml/tree/"), methods: []string{"GET", "HEAD", "GET"}})
}()

// callbackSteps try each byte in the name of a function.
func callbackSteps() []step {
	names := []string{"", "f", "a.b_c9", "F", "%66", "f%", strings.Repeat("f", 128), strings.Repeat("f", 129), "f&callback=g", "f&callback=-", "-&callback=f"}
	for c := byte('!'); c != 0; c++ {
		names = append(names, "a"+string([]byte{c}))
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "a#" }) // begins a fragment
	var targets []string
	for _, name := range names {
		targets = append(targets, "/jsonp/?callback="+name)
	}
	return gets(append(targets, "/jsonp/?CallBack=f", "/jsonp/?xcallback=f", "/jsonp/?x=1&callback=f", "/jsonp/?callback", "/jsonp/none/?callback=-", "/json/?callback=f", "/jsonp/?callback=a#b")...)
}
