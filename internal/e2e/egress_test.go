package e2e

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Debian's tinyproxy and microsocks lead to targets, and say why they do not.
func TestEgress(t *testing.T) {
	peers := map[string]func(t *testing.T) (url string){
		"tinyproxy": func(t *testing.T) string {
			addr, dir := wiretest.Free(t), t.TempDir()
			_, port, _ := net.SplitHostPort(addr)
			writeFiles(t, dir, map[string]string{"c": "Listen 127.0.0.1\nPort " + port + "\nTimeout 60\nMaxClients 100\nBasicAuth user secret\n"})
			startListening(t, addr, "tinyproxy", "-d", "-c", filepath.Join(dir, "c"))
			return "http://user:%s@" + addr
		},
		"microsocks": func(t *testing.T) string {
			addr := wiretest.Free(t)
			_, port, _ := net.SplitHostPort(addr)
			startListening(t, addr, "microsocks", "-i", "127.0.0.1", "-p", port, "-u", "user", "-P", "secret")
			return "socks5://user:%s@" + addr
		},
	}
	for name, start := range peers {
		t.Run(name, func(t *testing.T) {
			url := start(t)
			target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") }))
			defer target.Close()
			for _, test := range []struct {
				password, addr string
				status         int
				kind           culvert.ErrorKind
			}{
				{"secret", target.Listener.Addr().String(), 200, 0},
				{"wrong", target.Listener.Addr().String(), 500, culvert.Internal},
				{"secret", wiretest.Unused(t), 502, culvert.DialFailed},
			} {
				dial, err := upstream.DialThrough(fmt.Sprintf(url, test.password), upstream.EgressOptions{})
				if err != nil {
					t.Fatal(err)
				}
				group, err := upstream.New(upstream.Options{Scheme: "https", DialContext: dial, TLSConfig: &tls.Config{InsecureSkipVerify: true}}, upstream.Target{Addr: test.addr})
				if err != nil {
					t.Fatal(err)
				}
				var failure *culvert.Error
				p, err := proxy.New(proxy.Options{Upstream: group, OnError: func(_ *http.Request, e *culvert.Error) { failure = e }})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					w := httptest.NewRecorder()
					p.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
					if w.Code != test.status || w.Code == 200 && w.Body.String() != "ok" {
						t.Errorf("%s to %s: %d %q, want %d", test.password, test.addr, w.Code, w.Body, test.status)
					}
				}
				if test.status != 200 && (failure == nil || failure.Kind != test.kind || !errors.As(failure, new(*upstream.EgressError))) {
					t.Errorf("%s to %s: %v, want the kind %v", test.password, test.addr, failure, test.kind)
				}
				_ = group.Close()
			}
		})
	}
}
