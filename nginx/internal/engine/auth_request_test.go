package engine_test

import (
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// The response to an auth_request is its header: a content that does not end holds no request up.
func TestAuthRequestOfASilentUpstream(t *testing.T) {
	for name, header := range map[string]string{"a length": "Content-Length: 100\r\n\r\npart", "chunks": "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"} {
		t.Run(name, func(t *testing.T) {
			upstream := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				p.Send("HTTP/1.1 200 OK\r\n" + header)
				p.Ended()
			})
			s := serve(t, with(server(`
				location / { auth_request /checks; try_files /a =404; }
				location /checks { proxy_pass http://`+upstream+`; }`), "html/a", "allowed"))
			equal(t, "the response", s.get("/").body, "allowed")
		})
	}
}
