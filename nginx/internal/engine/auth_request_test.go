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

// The path of auth_request is one with all that stands in it, as in nginx: it has no query.
func TestAuthRequestHasNoQuery(t *testing.T) {
	s := serve(t, with(server(`
		location / { auth_request /checks?a=b; try_files /a =404; }
		location /checks { if ($args) { return 403; } if ($uri = "/checks?a=b") { return 204; } return 401; }`), "html/a", "allowed"))
	equal(t, "the response", s.get("/?c=d").body, "allowed")
}
