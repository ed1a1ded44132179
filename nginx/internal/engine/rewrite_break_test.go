package engine_test

import (
	"strings"
	"testing"
)

// A break behind a rewrite keeps the location, and the path is sent as the rewrite has made it, as with "rewrite … break".
func TestBreakBehindRewrite(t *testing.T) {
	s := serve(t, server(strings.ReplaceAll(`location /a { rewrite ^ /b; break; proxy_pass http://UP/c; }
		location /d { rewrite ^ /e break; proxy_pass http://UP/c; }
		location /f { break; proxy_pass http://UP/c; }`, "UP", echo(t))))
	for target, want := range map[string]string{"/a/x": "/b", "/d/x": "/e", "/f/x": "/c/x"} {
		if got := s.get(target).body; !strings.HasPrefix(got, "GET "+want+" ") {
			t.Errorf("%s: %q, want %s", target, got, want)
		}
	}
}

// An error page without content has a length: its status is another one's.
func TestErrorPageWithoutContent(t *testing.T) {
	s := serve(t, server(`location / { error_page 405 /none; return 405; } location /none { return 204; }`))
	got := s.get("/")
	equal(t, "status", got.StatusCode, 405)
	equal(t, "length", got.Header.Get("Content-Length"), "0")
	equal(t, "of 204", s.get("/none").Header["Content-Length"] == nil, true)
}
