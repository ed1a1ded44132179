package engine_test

import (
	"strings"
	"testing"
)

// proxy_pass_header Server shows what the upstream says of itself, if it is nothing.
func TestPassedServer(t *testing.T) {
	silent := raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	s := serve(t, server(strings.ReplaceAll(`location / { proxy_pass http://UP; } location /passed { proxy_pass http://UP; proxy_pass_header Server; }
		location /page { proxy_pass_header Server; proxy_pass http://127.0.0.1:1; }`, "UP", silent)))
	for target, want := range map[string]bool{"/": true, "/passed": false, "/page": true} {
		if got := s.header("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n"); strings.Contains(got, "\r\nServer: ") != want {
			t.Errorf("%s: %q", target, got)
		}
	}
}
