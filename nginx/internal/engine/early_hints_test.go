package engine_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A client receives an upstream's 103 where a value of early_hints is neither empty nor 0. The directives of an inner level replace
// those of the outer ones.
func TestEarlyHints(t *testing.T) {
	target := wiretest.Replying(t, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	s := serve(t, map[string]string{"nginx.conf": strings.ReplaceAll(`events {} http {
		server { listen 80; location / { proxy_pass http://TARGET; } }
		server { listen 80; server_name on;
			early_hints $http_first; early_hints 0 $http_second;
			location / { proxy_pass http://TARGET; }
			location /off { early_hints 0; proxy_pass http://TARGET; }
		} }`, "TARGET", target)})
	for _, tt := range []struct {
		path, fields string
		want         bool
	}{
		{"/", "Host: a\r\n", false},
		{"/", "Host: on\r\n", false},
		{"/", "Host: on\r\nFirst: 0\r\n", false},
		{"/", "Host: on\r\nFirst: yes\r\n", true},
		{"/", "Host: on\r\nSecond: 1\r\n", true},
		{"/off", "Host: on\r\nFirst: yes\r\n", false},
	} {
		p := wiretest.Dial(t, s.first)
		p.Send("GET " + tt.path + " HTTP/1.1\r\n" + tt.fields + "\r\n")
		header := p.Header()
		if got := header == "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"; got != tt.want || !got && !strings.HasPrefix(header, "HTTP/1.1 200 ") {
			t.Errorf("%s, %q: %q", tt.path, tt.fields, header)
		}
	}
}
