package engine_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// With chunked_transfer_encoding off, content of unknown length ends with the connection and has
// no trailers; content of known length leaves the connection open.
func TestChunkedTransferEncodingOff(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "of unknown length")
	}))
	t.Cleanup(up.Close)
	s := serve(t, with(server(strings.ReplaceAll(`keepalive_timeout 60 20; add_trailer X-End 1 always; chunked_transfer_encoding off;
		location / { proxy_pass UP; }
		location /gzip { gzip on; gzip_types *; gzip_min_length 1; alias file; }
		location /file { alias file; }
		location /on { chunked_transfer_encoding on; proxy_pass UP; }`, "UP", up.URL)), "file", strings.Repeat("text ", 100)))
	// raw returns what the server sends until it closes the connection.
	raw := func(requests string) (header, body string) {
		t.Helper()
		conn, err := net.Dial("tcp", s.first)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, requests)
		all, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		front, rest, _ := bytes.Cut(all, []byte("\r\n\r\n"))
		return string(front) + "\r\n", string(rest)
	}
	for _, target := range []string{"/", "/gzip"} { // the client does not request the close, and the server must
		header, body := raw("GET " + target + " HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n")
		if !strings.Contains(header, "\r\nConnection: close\r\n") || strings.Contains(header, "Transfer-Encoding") || strings.Contains(header, "Keep-Alive") ||
			target == "/" && body != "of unknown length" || target == "/gzip" && !strings.HasPrefix(body, "\x1f\x8b") {
			t.Errorf("%s: %s%q", target, header, body)
		}
	}
	header, body := raw("GET /file HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n")
	if !strings.Contains(header, "\r\nConnection: keep-alive\r\n") || !strings.Contains(header, "\r\nContent-Length: 500\r\n") ||
		!strings.HasSuffix(body, "of unknown length") || strings.Contains(body, "X-End") {
		t.Errorf("known length: %s%q", header, body)
	}
	header, body = raw("GET /on HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if !strings.Contains(header, "\r\nTransfer-Encoding: chunked\r\n") || !strings.HasSuffix(body, "0\r\nX-End: 1\r\n\r\n") {
		t.Errorf("on: %s%q", header, body)
	}
}
