package wsupgrade_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

func TestAllowOrigins(t *testing.T) {
	check, err := wsupgrade.AllowOrigins("https://app.example", "http://dev.example:8080", "https://*.apps.example")
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{
		"":                                        true, // no browser
		"https://culvert.test":                    true, // the site itself
		"https://app.example":                     true,
		"https://APP.example:443":                 true,
		"http://dev.example:8080":                 true,
		"https://one.apps.example":                true,
		"https://two.one.apps.example":            true,
		"http://app.example":                      false,
		"https://app.example:8443":                false,
		"http://dev.example":                      false,
		"https://apps.example":                    false,
		"https://badapps.example":                 false,
		"https://app.example.evil":                false,
		"https://app.example@evil":                false,
		"https://app.example/":                    false,
		"https://*.apps.example":                  false,
		"null":                                    false,
		"ftp://app.example":                       false,
		"https://app.example|https://app.example": false,
	} {
		r, err := http.NewRequest("GET", "https://culvert.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			r.Header["Origin"] = strings.Split(origin, "|")
		}
		if check(r) != want {
			t.Errorf("origin %q: %v, want %v", origin, !want, want)
		}
	}
	for _, bad := range []string{"*", "null", "https://*", "app.example", "https://app.example/path", "ws://app.example", ""} {
		if f, err := wsupgrade.AllowOrigins(bad); f != nil || err == nil {
			t.Errorf("origin %q is allowed", bad)
		}
	}
}

// A page whose name was made to lead here is of its own origin, and refused by its
// name.
func TestHosts(t *testing.T) {
	leaktest.Check(t)
	addr := gateway(t, wsupgrade.Options{Hosts: []string{"culvert.test", "*.culvert.test", "::1"}}, mirroring(t))
	for host, want := range map[string]string{
		"culvert.test": "101", "CULVERT.test:8080": "101", "a.culvert.test": "101", "[::1]:80": "101",
		"evil.test": "403", "culvert.test.evil": "403", "notculvert.test": "403", ".culvert.test": "403",
	} {
		p := wiretest.Dial(t, addr)
		p.Send(with(strings.Replace(handshake, "Host: culvert.test", "Host: "+host, 1), "Origin: http://"+host))
		if head := p.Head(); !strings.HasPrefix(head, "HTTP/1.1 "+want+" ") {
			t.Errorf("host %s: %q, want %s", host, head, want)
		}
	}
	for _, bad := range []string{"", "*", "*.", "a/b", "a b"} {
		if f, err := wsupgrade.New(wsupgrade.Options{Hosts: []string{bad}}); f != nil || err == nil {
			t.Errorf("host %q is taken", bad)
		}
	}
}

// 1005, 1006 and 1015 stand for what was never sent, and are not.
func TestCodesThatAreNeverWritten(t *testing.T) {
	for _, code := range []int{0, 1005, 1006, 1015} {
		overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error) {
			go only(t, r).Close(code, "reason")
			for _, end := range []*duplex{client, target} {
				if first, payload, _ := nextFrame(t, end); first != closing || payload != "" {
					t.Errorf("code %d: frame %#x %q", code, first, payload)
				}
			}
		})
	}
}
