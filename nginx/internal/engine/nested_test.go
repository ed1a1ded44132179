package engine_test

import (
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// Captures of the enclosing locations' regular expressions apply inside, and the index of an
// alias made of captures is looked for in the directory that they make.
func TestCapturesOfLocationsAround(t *testing.T) {
	s := serve(t, map[string]string{"html/index.html": "the index", "nginx.conf": `events {} http { access_log off; server {
		location ~ ^/o/(?<name>[^/]+)/([0-9]+)$ {
			location ~ ([0-9])$ { return 200 "$name-$1"; }
		}
		location ~ ^/files/(.*)$ { alias html/$1; }
	} }`})
	for target, want := range map[string]string{
		"/o/ab/12": "ab-2", "/files/": "the index", "/files/index.html": "the index",
	} {
		client := wiretest.Dial(t, s.first)
		client.Send("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")
		if _, got := client.Response("GET"); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}
