package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// startStatus serves a gateway with a page at /status, which permits changes, in front of a target that echoes WebSockets.
func startStatus(t *testing.T, name string) (address string, group *upstream.Group, tunnels *wsupgrade.Registry) {
	t.Helper()
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, message) != nil {
				return
			}
		}
	}))
	group, err := upstream.New(upstream.Options{Name: name}, upstream.Target{Addr: target}, upstream.Target{Addr: wiretest.Unused(t), Backup: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close() })
	if tunnels, err = wsupgrade.NewRegistry(wsupgrade.RegistryOptions{}); err != nil {
		t.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Registry: tunnels})
	if err != nil {
		t.Fatal(err)
	}
	forward, err := proxy.New(proxy.Options{Upstream: group, Upgrades: upgrades})
	if err != nil {
		t.Fatal(err)
	}
	page, err := statuspage.New(statuspage.Options{Groups: slices.Values([]statuspage.Upstream{group}), Tunnels: tunnels,
		Authorize: func(*http.Request) bool { return true }, Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(page.Close)
	mux := http.NewServeMux()
	mux.Handle("/", forward)
	mux.Handle("/status", page)
	return wiretest.Serve(t, filters.NewChain(filters.Observe(page)).Then(mux)), group, tunnels
}

// shows waits until a condition is true, also of a page that is loaded meanwhile.
func (b *browser) shows(t *testing.T, what, condition string) {
	t.Helper()
	waitFor(t, what, func() bool {
		var is bool
		return chromedp.Run(b.tab, chromedp.Evaluate(condition, &is)) == nil && is
	})
}

// TestStatusPage: what happens is shown without a reload, buttons do what they say, and a name can't run a script.
func TestStatusPage(t *testing.T) {
	const evil = `<img src=x onerror="document.title='run'">`
	address, group, tunnels := startStatus(t, evil)
	var target string
	for s := range group.Targets() {
		target = s.Target.Addr
		break
	}
	b := startBrowser(t)
	b.run(t, chromedp.Navigate("http://"+address+"/status"))
	b.shows(t, "events", `document.querySelector("#live")?.dataset.state === "on"`)
	var heading, title string
	b.run(t, chromedp.Evaluate(`document.querySelector("h2").innerText`, &heading), chromedp.Title(&title))
	if heading != evil+" http" || title != "culvert" {
		t.Errorf("heading %q, title %q", heading, title)
	}

	conn, _, err := websocket.DefaultDialer.Dial("ws://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b.shows(t, "the tunnel", `!!document.querySelector("tr[data-key='tunnel 1']")`)
	if err := conn.WriteMessage(websocket.TextMessage, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	b.shows(t, "its bytes", `document.querySelector("tr[data-key='tunnel 1']").innerText.includes("2.0 KiB")`)

	const row = `document.querySelector("tbody tr")`
	for _, state := range []string{"drained", "up"} {
		b.pressSlowly(t, "tbody tr button")
		b.shows(t, state, row+`?.dataset.state === "`+state+`" && document.querySelector("#live")?.dataset.state === "on"`)
		for s := range group.Targets() {
			if s.Target.Addr == target && s.Drained != (state == "drained") {
				t.Errorf("%s, but drained is %v", state, s.Drained)
			}
		}
	}

	b.run(t, chromedp.Click("tr[data-key='tunnel 1'] button", chromedp.ByQuery))
	if _, _, err := conn.ReadMessage(); err != nil { // the echo
		t.Error(err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, wsupgrade.GoingAway) {
		t.Errorf("the tunnel ended with %v", err)
	}
	b.shows(t, "no tunnel", `!document.querySelector("tr[data-key='tunnel 1']")`)
	if n := tunnels.Len(); n != 0 {
		t.Errorf("%d tunnels are open", n)
	}
	if log := b.log(); log != "" {
		t.Errorf("console: %s", log)
	}
}

// pressSlowly presses a button, lets a few events come, and releases it.
func (b *browser) pressSlowly(t *testing.T, selector string) {
	t.Helper()
	var at struct{ X, Y float64 }
	b.run(t, chromedp.WaitVisible(selector, chromedp.ByQuery),
		chromedp.Evaluate(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return {X: r.x + r.width/2, Y: r.y + r.height/2} })()`, selector), &at),
		chromedp.Evaluate(`window.updates = 0; new MutationObserver(() => window.updates++).observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true}); 0`, nil))
	b.run(t, input.DispatchMouseEvent(input.MousePressed, at.X, at.Y).WithButton(input.Left).WithClickCount(1))
	for i := range 3 { // what changes the page
		if resp, err := http.Get(strings.Replace(b.location(t), "/status", fmt.Sprint("/press", i), 1)); err == nil {
			resp.Body.Close()
		}
	}
	b.shows(t, "changes", "window.updates > 2")
	b.run(t, input.DispatchMouseEvent(input.MouseReleased, at.X, at.Y).WithButton(input.Left).WithClickCount(1))
}

func (b *browser) location(t *testing.T) (url string) {
	t.Helper()
	b.run(t, chromedp.Location(&url))
	return strings.TrimSuffix(url, "?")
}

// TestStatusPageOfTheDemo: the directive's page is live, and shows the requests of the demonstration's page.
func TestStatusPageOfTheDemo(t *testing.T) {
	address := startDemo(t)
	b := startBrowser(t)
	b.run(t, chromedp.Navigate("http://"+address+"/status"))
	b.shows(t, "events", `document.querySelector("#live")?.dataset.state === "on" && document.querySelectorAll("section").length === 5`)
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+address+"/socket/now?e2e", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b.shows(t, "the tunnel", `!!document.querySelector("tr[data-key^='tunnel'] td") && document.querySelector("tr[data-key^='tunnel'] td").innerText === "websocket"`)
	if resp, err := http.Get("http://" + address + "/turns"); err != nil || resp.Body.Close() != nil {
		t.Fatal(err)
	}
	b.shows(t, "the request", `document.querySelector("section[data-key='group http turns'] tbody").innerText.includes(", 1")`)
	if log := b.log(); log != "" {
		t.Errorf("console: %s", log)
	}
}
