package wsupgrade_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

func TestAllowOrigins(t *testing.T) {
	check, err := wsupgrade.AllowOrigins("https://app.example", "http://dev.example:8080", "https://*.apps.example", "http://[0:0:0:0:0:0:0:1]:3000", "https://192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{
		"":                                        true, // not a browser
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
		"https://.apps.example":                   false,
		"https://..apps.example":                  false,
		"https://a..apps.example":                 false,
		"https://a.apps.example.":                 false,
		"https://a.apps.example:":                 false,
		"https://a.apps.example:0443":             false,
		"http://[::1]:3000":                       true,
		"http://::1:3000":                         false,
		"http://[::1%25eth0]:3000":                false,
		"https://192.0.2.1":                       true,
		"https://192.0.2.01":                      false,
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
}

// An origin that is ambiguous, or that no page has, is refused, and named in the error.
func TestAllowOriginsRefuses(t *testing.T) {
	for _, bad := range []string{
		"", "*", "null", "https://", "https://*", "https://*.", "https://**.app.example", "https://*.*.example",
		"https://*app.example", "https://a*.app.example", "https://app.*", "https://app.*.example", "https://*-a.example",
		"app.example", "ws://app.example", "file://app.example", "https:app.example", "https:///app.example",
		"https://app.example/", "https://app.example/path", "https://app.example?q", "https://app.example#f", "https://u@app.example",
		"https://.app.example", "https://app.example.", "https://app..example", "https://*..app.example",
		"https://bücher.example", "https://\u212A.example", "https://*." + strings.Repeat("a.", 126) + "a", "https://app example", "https://app%2eexample", " https://app.example", "https://app.example ",
		"https://app.example:", "https://app.example:0", "https://app.example:0443", "https://app.example:65536", "https://app.example:x", "https://app.example:*",
		"https://::1", "https://[::1", "https://[::1]x", "https://[app.example]", "https://[127.0.0.1]", "https://[fe80::1%25eth0]", "https://*.[::1]",
		"https://127.1", "https://127.0.0.0x1", "https://*.0.0.1", "https://*.127.0.0.1", "https://1.2.3.256",
		"https://" + strings.Repeat("a", 64) + ".example", "https://" + strings.Repeat("a.", 127) + "a",
	} {
		f, err := wsupgrade.AllowOrigins("https://good.example", bad)
		if f != nil || err == nil {
			t.Errorf("origin %q is allowed", bad)
		} else if !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("origin %q: the error does not name it: %v", bad, err)
		}
	}
}

// A page whose name was made to resolve to this server has the same origin as its WebSocket, and is
// refused by its name.
func TestHosts(t *testing.T) {
	leaktest.Check(t)
	addr := gateway(t, wsupgrade.Options{Hosts: []string{"culvert.test", "*.Culvert.test", "0::1", "192.0.2.1"}}, mirroring(t))
	for host, want := range map[string]string{
		"culvert.test": "101", "CULVERT.test:8080": "101", "a.culvert.test": "101", "[::1]:80": "101", "[::1]": "101", "192.0.2.1:80": "101",
		"evil.test": "403", "culvert.test.evil": "403", "notculvert.test": "403", ".culvert.test": "403",
		"..culvert.test": "403", "a..culvert.test": "403", "culvert.test.": "403", "culvert.test:x": "403", "192.0.2.10": "403",
	} {
		p := wiretest.Dial(t, addr)
		p.Send(with(strings.Replace(handshake, "Host: culvert.test", "Host: "+host, 1), "Origin: http://"+host))
		if header := p.Header(); !strings.HasPrefix(header, "HTTP/1.1 "+want+" ") {
			t.Errorf("host %s: %q, want %s", host, header, want)
		}
	}
	for _, bad := range []string{
		"", "*", "*.", "a/b", "a b", "*culvert.test", "a*.culvert.test", "**.culvert.test", "a.*.test", ".culvert.test", "culvert.test.", "a..test",
		"culvert.test:80", "127.0.0.1:80", "[::1]", "[::1]:80", "fe80::1%eth0", "*.::1", "*.127.0.0.1", "127.1", "bücher.example", "https://culvert.test", "u@culvert.test",
	} {
		f, err := wsupgrade.New(wsupgrade.Options{Hosts: []string{"good.test", bad}})
		if f != nil || err == nil {
			t.Errorf("host %q is taken", bad)
		} else if !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("host %q: the error does not name it: %v", bad, err)
		}
	}
}

// 1005, 1006 and 1015 mean that no code was received, and are not sent.
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
