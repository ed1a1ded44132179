package e2e

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// TestAccidentSticky410 is the incident itself: a page is gone for a while, and add_header, which was to keep browsers from
// keeping anything, skips the status 410. With the old configuration in nginx the browser never requests the page again, and
// the user never sees it come back; with the same file in culvert it does.
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
				requests    int64
				sees        string
			}{
				{"no proxy", p.address, 1, "gone"},
				{"nginx", startNginx(t, conf, nil).address, 1, "gone"},
				{"culvert", startCulvert(t, conf, nil).address, 2, "back"},
			} {
				p.requests.Store(0)
				p.back.Store(false)
				b.open(t, "http://"+visit.address+"/page")
				p.back.Store(true)
				b.open(t, "http://"+visit.address+"/page")
				sees := b.eval(t, "document.body.innerText")
				got, want := visited{p.requests.Load(), sees}, visited{visit.requests, visit.sees}
				if visit.by != "culvert" {
					fact(t, "visits through "+visit.by, got, want)
				} else if got != want {
					t.Errorf("through culvert: the page was requested %d times, and the user saw %q; want %v", got.requests, got.sees, want)
				}
			}
		})
	}
}

// visited is how often a page was requested, and what the user saw last.
type visited struct {
	requests int64
	sees     string
}

// page is gone until it is back.
type page struct {
	address  string
	requests atomic.Int64
	back     atomic.Bool
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
	p.requests.Add(1)
	w.Header().Set("Content-Type", "text/html")
	if p.back.Load() {
		fmt.Fprint(w, "<h1>back</h1>")
		return
	}
	w.WriteHeader(http.StatusGone)
	fmt.Fprint(w, "<h1>gone</h1>")
}
