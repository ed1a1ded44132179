package engine_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

func TestAddition(t *testing.T) {
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http { charset_map B A { 58 59; } gzip_min_length 1; server { root html; types { text/html html; text/foo foo; }
		location / { add_before_body /before; add_after_body /after.html; sub_filter e E; sub_filter_once off; }
		location /types/ { addition_types text/foo; add_after_body /after.html; alias html/; }
		location /missing/ { add_after_body /nowhere; alias html/; }
		location /recoded/ { charset A; source_charset B; add_after_body /after.html; alias html/; }
		location /gzip/ { gzip on; add_after_body /recoded/x.html; alias html/; }
		location /moved.html { add_after_body /after.html; rewrite ^ /moved/x.html; }
		location /moved/ { add_before_body /before; add_after_body /before; error_page 404 /x.html; }
		location = /self.html { add_after_body /self.html; return 200 "self"; }
		location = /before { return 200 "[before $request_method $request_uri]"; }
		location = /after.html { charset A; source_charset B; return 200 "[Xafter]"; }
	} }`}, "html/x.html", "Xe", "html/x.foo", "foo"))
	for target, want := range map[string]string{
		"/x.html":         "[before GET /x.html]XE[Xafter]", // texts are replaced by the subrequest's own location
		"/x.foo":          "foo",
		"/self.html":      "selfself", // once: a subrequest gets none
		"/types/x.foo":    "foo[Xafter]",
		"/types/x.html":   "Xe[Xafter]",
		"/recoded/x.html": "Ye[Yafter]", // in the charset of the response, once
		"/moved.html":     "",           // not found
	} {
		got := s.get(target)
		if got.StatusCode == 200 {
			equal(t, target, got.body, want)
		}
	}
	equal(t, "not 200", s.get("/moved/x").body, "XE")
	if got := s.get("/missing/x.html"); !strings.HasPrefix(got.body, "Xe<html>") || !strings.Contains(got.body, "404 Not Found") {
		t.Errorf("a subrequest fails: %q", got.body)
	}
	got := s.get("/x.html", "Range: bytes=0-0")
	equal(t, "length, ranges", got.Header.Get("Content-Length")+got.Header.Get("Accept-Ranges"), "")
	equal(t, "a weak ETag", strings.HasPrefix(s.get("/types/x.foo").Header.Get("Etag"), "W/"), true)
	head := s.request("HEAD", "/x.html")
	equal(t, "HEAD", head.body+head.Header.Get("Content-Length"), "")
	zipped := s.get("/gzip/x.html", "Accept-Encoding: gzip")
	equal(t, "gzip of all", zipped.Header.Get("Content-Encoding"), "gzip")
}

// A part that breaks off breaks the response: it must not look complete.
func TestAdditionBreaksOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
			c.Close()
		}
	}()
	s := serve(t, with(server(`location / { root .; add_after_body /part; } location /part { proxy_pass http://`+l.Addr().String()+`; }`), "x.html", "whole"))
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /x.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	got, _ := io.ReadAll(conn)
	if strings.HasSuffix(string(got), "0\r\n\r\n") || !strings.Contains(string(got), "whole") {
		t.Errorf("%q", got)
	}
}
