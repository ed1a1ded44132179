package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a Chromium with a profile of its own, one tab open.
type browser struct {
	tab context.Context

	mu      sync.Mutex
	console []string
}

// startBrowser starts Debian's Chromium. Everything that would have it talk to
// other servers is off.
func startBrowser(t *testing.T, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("Debian's Chromium is needed (apt-get install chromium): %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile(t)),
		chromedp.NoSandbox, // the tests may run as root
		chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	t.Cleanup(stop)
	b := &browser{}
	tab, closeTab := chromedp.NewContext(ctx)
	b.tab = tab
	t.Cleanup(closeTab)
	chromedp.ListenTarget(tab, b.listen)
	if err := chromedp.Run(tab); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return b
}

// profile is a folder that is removed when the browser's last process has ended: until
// then new files may appear in it.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "culvert-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(dir)
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = os.RemoveAll(dir) {
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

// listen keeps what pages write to the console.
func (b *browser) listen(event any) {
	var line string
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		line = string(e.Type)
		for _, argument := range e.Args {
			line += " " + string(argument.Value)
		}
	case *runtime.EventExceptionThrown:
		line = e.ExceptionDetails.Error()
	case *log.EventEntryAdded:
		line = fmt.Sprintf("%s %s %s", e.Entry.Level, e.Entry.URL, e.Entry.Text)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.console = append(b.console, line)
}

func (b *browser) log() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.console, "\n")
}

// run runs actions in the tab.
func (b *browser) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.tab, actions...); err != nil {
		t.Fatalf("%v\nconsole:\n%s", err, b.log())
	}
}

// visit opens a page as a user does who enters its address: coming from another
// one, so that it is no reload.
func (b *browser) visit(t *testing.T, url string) (text string) {
	t.Helper()
	b.run(t, chromedp.Navigate("about:blank"), chromedp.Navigate(url), chromedp.Evaluate("document.body.innerText", &text))
	return text
}
