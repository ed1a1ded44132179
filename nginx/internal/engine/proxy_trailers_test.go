package engine_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The trailers of upstreams are forwarded with proxy_pass_trailers alone, and those of add_trailer are
// spelt as the configuration spells them, in its order.
func TestProxyPassTrailers(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
	}))
	t.Cleanup(up.Close)
	s := serve(t, server(strings.ReplaceAll(`
		location / { proxy_pass UP; }
		location /on { proxy_pass_trailers on; proxy_pass UP; location /on/off { proxy_pass_trailers off; proxy_pass UP; } }
		location /added { proxy_pass UP; add_trailer X-SUM 1; add_trailer x-HTTP $sent_http_content_type; add_trailer a-b 2; }`, "UP", up.URL)))
	for target, want := range map[string]string{
		"/": "", "/on": "X-Sum: 42\r\n", "/on/off": "", "/added": "X-SUM: 1\r\nx-HTTP: text/plain; charset=utf-8\r\na-b: 2\r\n",
	} {
		conn, err := net.Dial("tcp", s.first)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		all, err := io.ReadAll(conn)
		conn.Close()
		if err != nil {
			t.Fatal(err)
		}
		_, got, ok := strings.Cut(string(all), "4\r\ntext\r\n0\r\n")
		equal(t, target, ok, true)
		equal(t, target, got, want+"\r\n")
	}
}
