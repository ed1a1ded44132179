package engine_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// $request_body has the body of a request that is small enough and is proxied, and the upstream
// receives each body unchanged. What is streamed has a value if it was received with the header.
func TestRequestBodyVariable(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Sent", r.Header.Get("X-Body"))
		_, _ = w.Write(body)
	}))
	t.Cleanup(backend.Close)
	pass := "proxy_pass " + backend.URL + "; proxy_set_header X-Body $request_body;"
	s := serve(t, map[string]string{"nginx.conf": `events {} http { log_format body "$request_body"; access_log body.log body; client_body_buffer_size 8;
		server { location / { ` + pass + ` } location /streamed { proxy_request_buffering off; ` + pass + ` } location /here { return 200; } } }`})
	for _, test := range []struct{ target, fields, body, sent, got string }{
		{"/", "Content-Length: 5", "hello", "hello", "hello"},
		{"/", "Content-Length: 8", "12345678", "12345678", "12345678"},
		{"/", "Content-Length: 9", "123456789", "123456789", "123456789"}, // nginx has a larger buffer for it
		{"/", "Content-Length: 10", "1234567890", "", "1234567890"},
		{"/", "Transfer-Encoding: chunked", "5\r\nhello\r\n3\r\n me\r\n0\r\n\r\n", "hello me", "hello me"},
		{"/", "Transfer-Encoding: chunked", "5\r\nhello\r\n6\r\n there\r\n0\r\n\r\n", "", "hello there"},
		{"/", "Content-Length: 0", "", "", ""},
		{"/streamed", "Content-Length: 5", "hello", "hello", "hello"},
	} {
		a := s.send("POST " + test.target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + test.fields + "\r\n\r\n" + test.body)
		if a.body != test.got || a.Header.Get("X-Sent") != test.sent {
			t.Errorf("%s %q: the upstream got %q and %q", test.target, test.body, a.body, a.Header.Get("X-Sent"))
		}
	}
	s.send("POST /here HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
	equal(t, "the log", s.file("body.log"), "hello\n12345678\n123456789\n-\nhello me\n-\n-\nhello\n-\n")
}

// A rate chosen by "set" applies, and an invalid one is logged.
func TestSetLimitRate(t *testing.T) {
	s := serve(t, server(`set $limit_rate $arg_rate; set $seen $limit_rate; location / { limit_rate 2m; return 200 "$seen"; }
		error_log error.log;`))
	equal(t, "a rate", s.get("/?rate=1m").body, "1048576")
	equal(t, "no rate", s.get("/?rate=x").body, "0")
	if !strings.Contains(s.file("error.log"), `invalid $limit_rate "x"`) {
		t.Errorf("the log has %q", s.file("error.log"))
	}
}

// The ratio of a compressed response, and whether the response was sent in full.
func TestResponseVariables(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http { gzip on; gzip_types *; gzip_min_length 1;
		log_format l "$gzip_ratio|$request_completion|$limit_rate|$http2$http3|$connection_time|$upstream_cache_status"; access_log l.log l;
		server { location / { return 200 "` + strings.Repeat("the same text, ", 200) + `"; } location /abort { return 444; } } }`})
	s.get("/", "Accept-Encoding: gzip")
	s.get("/")
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /abort HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(conn); len(rest) > 0 {
		t.Errorf("444 was sent as %q", rest)
	}
	lines := strings.Split(s.file("l.log"), "\n")
	for i, want := range []string{`^\d\d\.\d\d\|OK\|0\|\|0\.\d{3}\|-$`, `^-\|OK\|0\|\|0\.\d{3}\|-$`, `^-\|\|0\|\|0\.\d{3}\|-$`, "^$"} {
		if i >= len(lines) || !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("line %d of %q: want %s", i, lines, want)
		}
	}
}

// A type that no response can have compresses nothing, and is not an error of the configuration.
func TestGzipTypesThatNothingHas(t *testing.T) {
	s := serve(t, map[string]string{"nginx.conf": `events {} http { gzip on; gzip_types "a/b; c" "*/*" a/b; gzip_min_length 1;
		server { location / { return 200 "text"; } location /b { default_type a/b; return 200 "text"; } } }`})
	equal(t, "plain", s.get("/", "Accept-Encoding: gzip").Header.Get("Content-Encoding"), "")
	equal(t, "a/b", s.get("/b", "Accept-Encoding: gzip").Header.Get("Content-Encoding"), "gzip")
}
