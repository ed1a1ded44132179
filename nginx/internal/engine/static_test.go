package engine_test

import (
	"strings"
	"testing"
)

func TestStaticFiles(t *testing.T) {
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http {
		types { text/html html; text/css css; }
		default_type application/octet-stream;
		server {
			root html;
			location /types/ { types { text/x-own css; } }
			location /alias/ { alias html/dir/; }
			location ~ ^/re/(.*)$ { alias html/$1; }
			location /index/ { index none.html $arg_i.html last.html; }
			location /try { try_files $uri $uri/ /dir/ =404; }
			location /try2 { try_files /nothere @fallback; }
			location /try3 { try_files /nothere /last?a=$arg_a; }
			location /try4 { try_files /nothere =418; }
			location /up { try_files /$arg_f =404; }
			location = /last { return 200 "last $args"; }
			location @fallback { return 200 "fallback $uri"; }
		}
	}`},
		"secret", "secret", "html/index.html", "home", "html/a.css", "css", "html/A.CSS", "CSS", "html/none", "x", "html/dir/index.html", "dir",
		"html/empty/.keep", "", "html/types/a.css", "t", "html/index/last.html", "last", "html/index/q.html", "q", "html/try/index.html", "tried",
		"html/sp ace+.txt", "space"))
	tests := []struct {
		method, target, body, kind string
		status                     int
	}{
		{"GET", "/", "home", "text/html", 200},
		{"GET", "/a.css", "css", "text/css", 200},
		{"GET", "/A.CSS", "CSS", "text/css", 200},
		{"GET", "/none", "x", "application/octet-stream", 200},
		{"GET", "/sp%20ace+.txt", "space", "application/octet-stream", 200},
		{"GET", "/types/a.css", "t", "text/x-own", 200},
		{"HEAD", "/a.css", "", "text/css", 200},
		{"GET", "/missing", "", "text/html", 404},
		{"GET", "/a.css/", "", "text/html", 404},
		{"GET", "/dir", "", "text/html", 301},
		{"GET", "/dir/", "dir", "text/html", 200},
		{"GET", "/empty/", "", "text/html", 403},
		{"GET", "/missing/", "", "text/html", 404},
		{"POST", "/a.css", "", "text/html", 405},
		{"POST", "/missing", "", "text/html", 404},
		{"PUT", "/missing", "", "text/html", 405},
		{"DELETE", "/a.css", "", "text/html", 405},
		{"GET", "/alias/index.html", "dir", "text/html", 200},
		{"GET", "/alias/", "dir", "text/html", 200},
		{"GET", "/alias", "", "text/html", 404},
		{"GET", "/alias../secret", "", "text/html", 404},
		{"GET", "/re/a.css", "css", "text/css", 200},
		{"GET", "/index/", "last", "text/html", 200},
		{"GET", "/index/?i=q", "q", "text/html", 200},
		{"GET", "/try/", "tried", "text/html", 200},
		{"GET", "/try/x", "", "text/html", 301}, // to the folder, as nginx: its index is another request
		{"GET", "/try2", "fallback /try2", "application/octet-stream", 200},
		{"GET", "/try3?a=1", "last a=1", "application/octet-stream", 200},
		{"GET", "/try4", "", "", 418},
		{"GET", "/%2e%2e/secret", "", "text/html", 400},
		{"GET", "/dir/..%2f..%2fsecret", "", "text/html", 400},
		{"GET", "/up?f=../secret", "", "text/html", 404},
		{"GET", "/re/%2e%2e/secret", "", "text/html", 404},
		{"GET", "/..%5csecret", "", "text/html", 404},
		{"GET", "/index/?i=../../secret%00", "last", "text/html", 200},
	}
	for _, tt := range tests {
		about := tt.method + " " + tt.target
		got := s.request(tt.method, tt.target)
		equal(t, about+" status", got.StatusCode, tt.status)
		equal(t, about+" type", got.Header.Get("Content-Type"), tt.kind)
		if tt.body != "" {
			equal(t, about+" body", got.body, tt.body)
		}
		if strings.Contains(got.body, "secret") {
			t.Errorf("%s: a file outside of the root: %q", about, got.body)
		}
	}
	equal(t, "directory", s.get("/dir?a=b").Header.Get("Location"), "http://localhost:"+port(s.first)+"/dir/?a=b")
}

func TestExpires(t *testing.T) {
	s := serve(t, with(server(`
		root html;
		location /max.css { expires max; }
		location /off.css { expires off; }
		location /epoch.css { expires epoch; add_header Cache-Control private; }
		location /var.css { expires $arg_e; }
		location /error { expires max; return 404; }
		expires 1h;`),
		"html/a.css", "", "html/max.css", "", "html/off.css", "", "html/epoch.css", "", "html/var.css", ""))
	for target, want := range map[string]string{
		"/a.css":          "max-age=3600",
		"/max.css":        "max-age=315360000",
		"/off.css":        "",
		"/epoch.css":      "no-cache|private",
		"/var.css?e=2m":   "max-age=120",
		"/var.css?e=-1":   "no-cache",
		"/var.css?e=soon": "",
		"/error":          "private, no-cache", // culvert's own, not the configuration's
	} {
		equal(t, target, strings.Join(s.get(target).Header["Cache-Control"], "|"), want)
	}
}

// The parts of several ranges have the type of the whole, with its charset. Content that is converted is sent as a whole.
func TestCharsetOfParts(t *testing.T) {
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http { access_log off; types { text/html html; } charset_map a b { 58 59; }
		server { root html; charset b; location /converted/ { alias html/; source_charset a; } location /off/ { alias html/; charset off; } } }`},
		"html/x.html", "XXXX0123"))
	for target, want := range map[string]string{"/x.html": "\r\nContent-Type: text/html; charset=b\r\n", "/off/x.html": "\r\nContent-Type: text/html\r\n"} {
		got := s.get(target, "Range: bytes=0-1,4-5")
		if got.StatusCode != 206 || strings.Count(got.body, want) != 2 || strings.Contains(got.Header.Get("Content-Type"), "charset") {
			t.Errorf("%s: %d %v %q", target, got.StatusCode, got.Header, got.body)
		}
	}
	got := s.get("/converted/x.html", "Range: bytes=0-1,4-5")
	if got.StatusCode != 200 || got.body != "YYYY0123" || got.Header.Get("Content-Type") != "text/html; charset=b" {
		t.Errorf("converted: %d %v %q", got.StatusCode, got.Header, got.body)
	}
}

// A root or an alias may have ".." segments, which paths below it may not have, nor complete.
func TestRootWithParents(t *testing.T) {
	files := with(server(`root html/../site; autoindex on; location /alias/ { alias html/sub/../../site/; } location /slash { alias site/../html/; }
		location /dot { alias site/.; } location /try/ { try_files $arg_file =404; } location /links/ { disable_symlinks on; alias html/../site/; }`),
		"site/x.txt", "x", "html/y.txt", "y", "html/sub/z.txt", "z", "secret.txt", "secret")
	s := serve(t, files)
	for target, want := range map[string]string{
		"/x.txt": "200 x", "/alias/x.txt": "200 x", "/slash/y.txt": "200 y", "/slashy.txt": "200 y", "/slash../secret.txt": "403", "/dot./secret.txt": "403",
		"/try/?file=/x.txt": "200 x", "/try/?file=/../secret.txt": "404", "/links/x.txt": "200 x",
	} {
		got := s.get(target)
		if status := got.Status[:3]; status != want[:3] || got.StatusCode == 200 && got.body != want[4:] {
			t.Errorf("%s: %s %q, want %s", target, got.Status, got.body, want)
		}
	}
	if got := s.get("/alias/"); got.StatusCode != 200 || !strings.Contains(got.body, "x.txt") {
		t.Errorf("the list is %s %q", got.Status, got.body)
	}
}
