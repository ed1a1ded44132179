package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestDemoPanelsTurnGreen opens the demonstration's start page as a new user
// would and waits until each accident has been tried again.
func TestDemoPanelsTurnGreen(t *testing.T) {
	address := startDemo(t)
	b := startBrowser(t)
	var panels []struct{ ID, State, Text string }
	const settled = `document.querySelectorAll("section[data-state]").length > 0 && !document.querySelector("section[data-state=running]")`
	const report = `[...document.querySelectorAll("section[data-state]")].map(s => ({ID: s.id, State: s.dataset.state, Text: s.innerText}))`
	b.run(t,
		chromedp.Navigate("http://"+address+"/"),
		chromedp.Poll(settled, nil, chromedp.WithPollingTimeout(45*time.Second)),
		chromedp.Evaluate(report, &panels))
	// What the browser suffers where culvert is not, or is told not to help.
	accidents := map[string]string{
		"upgrade":  "the server saw Upgrade: –\nand answered 404",
		"gone":     "visit 2: the server was asked 1 ×",
		"affinity": "app 1\napp 2\napp 1",
	}
	if len(panels) != 6 {
		t.Errorf("%d panels, want 6", len(panels))
	}
	for _, p := range panels {
		if p.State != "pass" {
			t.Errorf("panel %s: %s\n%s\nconsole: %s", p.ID, p.State, p.Text, b.log())
		}
		if want := accidents[p.ID]; !strings.Contains(p.Text, want) {
			t.Errorf("panel %s shows no accident %q:\n%s", p.ID, want, p.Text)
		}
	}
}

// startDemo runs the example without arguments on a free port.
func startDemo(t *testing.T) (address string) {
	t.Helper()
	address = freeAddress(t)
	temporary := t.TempDir()
	output := &lockedBuffer{}
	cmd := exec.Command(culvertNginx)
	cmd.Env = append(os.Environ(), "CULVERT_DEMO_ADDR="+address, "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demonstration ended with %v\n%s", err, output)
		}
		if left, _ := filepath.Glob(filepath.Join(temporary, "*")); len(left) > 0 {
			t.Errorf("the demonstration left %v behind", left)
		}
	})
	waitFor(t, "the demonstration", func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return address
}

// TestAccidentSticky410InChromium visits a bare 410 twice by navigation: straight at the
// backend Chromium never asks again, through culvert it does, and when the page
// has come back, the user sees it.
func TestAccidentSticky410InChromium(t *testing.T) {
	var asked atomic.Int64
	var recovered atomic.Bool
	backend := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/page" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		if !recovered.Load() {
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, "<h1>gone</h1>")
			return
		}
		fmt.Fprint(w, "<h1>back</h1>")
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go backend.Serve(l)
	t.Cleanup(func() { backend.Close() })
	gateway := startCulvert(t, `http { access_log off; server { listen {{LISTEN}}; location / { proxy_pass http://`+l.Addr().String()+`; }
add_header Cache-Control "no-cache, no-store, must-revalidate"; } }`, nil)

	b := startBrowser(t)
	for _, visit := range []struct {
		name, address string
		asked         int64
		sees          string
	}{
		{"straight", l.Addr().String(), 1, "gone"},
		{"through culvert", gateway.address, 2, "back"},
	} {
		asked.Store(0)
		recovered.Store(false)
		b.visit(t, "http://"+visit.address+"/page")
		recovered.Store(true)
		sees := b.visit(t, "http://"+visit.address+"/page")
		if asked.Load() != visit.asked || sees != visit.sees {
			t.Errorf("%s: the backend was asked %d times and the user saw %q; want %d and %q", visit.name, asked.Load(), sees, visit.asked, visit.sees)
		}
	}
}
