package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestDemoPanelsTurnGreen opens the demonstration's start page as a new user
// would and waits until each incident has been tried again.
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
	// What the browser sees without culvert, or if culvert is configured not to help.
	incidents := map[string]string{
		"upgrade":  "the server saw Upgrade: –\nand responded with 404",
		"gone":     "visit 2: requests at the server: 1",
		"affinity": "app 1\napp 2\napp 1",
	}
	if len(panels) != 6 {
		t.Errorf("%d panels, want 6", len(panels))
	}
	for _, p := range panels {
		if p.State != "pass" {
			t.Errorf("panel %s: %s\n%s\nconsole: %s", p.ID, p.State, p.Text, b.log())
		}
		if want := incidents[p.ID]; !strings.Contains(p.Text, want) {
			t.Errorf("panel %s shows no incident %q:\n%s", p.ID, want, p.Text)
		}
	}
}

// startDemo runs the example without arguments on a free port.
func startDemo(t *testing.T) (address string) {
	t.Helper()
	address = wiretest.Free(t)
	temporary := t.TempDir()
	output := &wiretest.Log{}
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
