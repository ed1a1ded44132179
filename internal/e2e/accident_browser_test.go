package e2e

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// TestAccidentSticky410 is the accident itself: a page answers 410 for a while, and
// add_header, which was to keep browsers from keeping anything, skips that status. With the
// old configuration in nginx the browser never asks again and the user never sees the page
// come back; the same file in culvert mends it.
func TestAccidentSticky410(t *testing.T) {
	for name, start := range map[string]func(*testing.T) visitor{
		"Chromium": func(t *testing.T) visitor { return startBrowser(t) },
		"Firefox":  func(t *testing.T) visitor { return startFirefox(t) },
	} {
		t.Run(name, func(t *testing.T) {
			p := startPage(t)
			conf := `http { access_log off; server { listen {{LISTEN}}; location / { proxy_pass http://` + p.address + `; }
add_header Cache-Control "no-cache, no-store, must-revalidate"; } }`
			b := start(t)
			for _, visit := range []struct {
				by, address string
				asked       int64
				sees        string
			}{
				{"nobody", p.address, 1, "gone"},
				{"nginx", startNginx(t, conf, nil).address, 1, "gone"},
				{"culvert", startCulvert(t, conf, nil).address, 2, "back"},
			} {
				p.asked.Store(0)
				p.back.Store(false)
				b.open(t, "http://"+visit.address+"/page")
				p.back.Store(true)
				b.open(t, "http://"+visit.address+"/page")
				sees := b.eval(t, "document.body.innerText")
				if asked := p.asked.Load(); asked != visit.asked || sees != visit.sees {
					t.Errorf("through %s: the page was asked for %d times and the user saw %q; want %d and %q", visit.by, asked, sees, visit.asked, visit.sees)
				}
			}
		})
	}
}

// page is gone until it is back.
type page struct {
	address string
	asked   atomic.Int64
	back    atomic.Bool
}

func startPage(t *testing.T) *page {
	t.Helper()
	p := &page{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	s := &http.Server{Handler: p}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return p
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/page" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	p.asked.Add(1)
	w.Header().Set("Content-Type", "text/html")
	if p.back.Load() {
		fmt.Fprint(w, "<h1>back</h1>")
		return
	}
	w.WriteHeader(http.StatusGone)
	fmt.Fprint(w, "<h1>gone</h1>")
}
