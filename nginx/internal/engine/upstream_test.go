package engine_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A server that is listed twice gets a request twice. Not found is no failure of a server.
func TestServerListedTwice(t *testing.T) {
	backend := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(backend.Close)
	up := backend.Listener.Addr().String()
	s := serve(t, map[string]string{"nginx.conf": `events {} http {
		upstream twice { server ` + up + `; server ` + up + `; server ` + up + ` backup; }
		upstream dead { server ` + up + ` down; server ` + up + ` down; }
		proxy_next_upstream http_404; add_header X-Up "$upstream_status" always; add_header X-Addr "$upstream_addr" always;
		server { location / { proxy_pass http://twice; }
			location /two { proxy_pass http://twice; proxy_next_upstream_tries 2; }
			location /dead { proxy_pass http://dead; } } }`})
	for range 2 {
		for path, want := range map[string]string{"/": "404, 404, 404", "/two": "404, 404", "/dead": "502"} {
			if got := s.get(path).Header.Get("X-Up"); got != want {
				t.Errorf("%s: the statuses are %q, want %q", path, got, want)
			}
		}
	}
	if got := s.get("/dead").Header.Get("X-Addr"); got != "dead" {
		t.Errorf("without a live server the address is %q", got)
	}
}
