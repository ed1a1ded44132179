package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

func newGroup(t *testing.T, o upstream.Options, targets ...upstream.Target) *upstream.Group {
	t.Helper()
	g, err := upstream.New(o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func newPage(t *testing.T, o statuspage.Options) *statuspage.Page {
	t.Helper()
	p, err := statuspage.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func of(groups ...*upstream.Group) statuspage.Options {
	return statuspage.Options{Groups: func(yield func(statuspage.Upstream) bool) {
		for _, g := range groups {
			if !yield(g) {
				return
			}
		}
	}}
}

// permit is an Authorize for requests with a header field.
func permit(r *http.Request) bool { return r.Header.Get("X-Operator") == "yes" }

// exchange sends a request over a connection of its own.
func exchange(t *testing.T, addr, request string) (*http.Response, string) {
	t.Helper()
	client := wiretest.Dial(t, addr)
	method, _, _ := strings.Cut(request, " ")
	client.Send(request)
	resp, body := client.Response(method)
	client.Conn.Close()
	return resp, body
}

// All responses are forbidden to be kept, framed, or to run anything else than the page's script.
func TestHeaders(t *testing.T) {
	leaktest.Check(t)
	addr := wiretest.Serve(t, newPage(t, statuspage.Options{}))
	for request, want := range map[string]string{
		"GET /any/path":     "200 text/html; charset=utf-8",
		"HEAD /any/path":    "200 text/html; charset=utf-8",
		"GET /?":            "200 text/html; charset=utf-8",
		"GET /?json":        "200 application/json",
		"GET /?script":      "200 text/javascript; charset=utf-8",
		"GET /?style":       "200 text/css; charset=utf-8",
		"HEAD /?events":     "200 text/event-stream",
		"POST /":            "403 text/plain; charset=utf-8",
		"DELETE /":          "405 text/plain; charset=utf-8",
		"OPTIONS /?events":  "405 text/plain; charset=utf-8",
		"GET /?json=1&json": "200 text/html; charset=utf-8",
	} {
		resp, body := exchange(t, addr, request+" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		if got := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Content-Type")); got != want {
			t.Errorf("%s: %s, want %s\n%s", request, got, want, body)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", request, name, got)
			}
		}
	}
}

// Names, addresses and texts of errors are escaped in the page, and can't end an event.
func TestEscaping(t *testing.T) {
	const evil = "\"><script>alert('1')</script>\r\n\r\nevent: other\rdata: x"
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, upstream.Options{Name: evil, Check: &upstream.Check{Fall: 1, Func: func(context.Context, upstream.Target) error { return errors.New(evil) }}},
			upstream.Target{Addr: "a:1"})
		defer g.Close()
		o := of(g)
		o.Title, o.Authorize = evil, func(*http.Request) bool { return true }
		time.Sleep(time.Minute)
		for _, query := range []string{"", "events"} {
			p, w := newPage(t, o), newStream()
			go p.ServeHTTP(w, w.request("GET", query))
			synctest.Wait()
			body := w.text()
			p.Close()
			synctest.Wait()
			if strings.Contains(body, "<script>alert") || !strings.Contains(body, "&lt;script&gt;alert(&#39;1&#39;)") || !strings.Contains(body, `name="do"`) {
				t.Errorf("?%s: %s", query, body)
			}
			if query == "events" && (strings.Contains(body, "\r") || strings.Contains(body, "\nevent: other") || strings.Count(body, "\n\n") != 1) {
				t.Errorf("events %q", body)
			}
		}
	})
}

// The states of targets, each with its reason.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad sync.Map // addresses of targets whose checks fail
		bad.Store("sick:1", true)
		check := &upstream.Check{Interval: time.Second, Jitter: -1, Fall: 2, Func: func(_ context.Context, t upstream.Target) error {
			if _, fails := bad.Load(t.Addr); fails {
				return errors.New("status 500")
			}
			return nil
		}}
		g := newGroup(t, upstream.Options{Name: "app", Check: check, Balance: upstream.First()},
			upstream.Target{Addr: "failing:1"}, upstream.Target{Addr: "shaky:1", MaxFails: 3}, upstream.Target{Addr: "sick:1"}, upstream.Target{Addr: "late:1", MaxConns: 7},
			upstream.Target{Addr: "down:1", Down: true}, upstream.Target{Addr: "idle:1", Weight: 3}, upstream.Target{Addr: "busy:1", Backup: true})
		defer g.Close()
		p := newPage(t, of(g))
		for range 2 { // failing:1 is out, shaky:1 is not
			lease, err := g.Pick(t.Context(), httptest.NewRequest("GET", "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			lease.Done(upstream.Outcome{Err: errors.New("refused")})
		}
		time.Sleep(2100 * time.Millisecond)
		bad.Store("late:1", true)
		time.Sleep(time.Second)
		if err := g.SetDrained("idle:1", true); err != nil {
			t.Fatal(err)
		}
		lease, err := g.Pick(t.Context(), httptest.NewRequest("GET", "/", nil))
		if err != nil || lease.Addr() != "shaky:1" {
			t.Fatal(lease.Addr(), err)
		}
		want := []string{
			"failing:1 ejected 0: 1 failure within 10s", "shaky:1 up 1: 1 of 3 failures that take it out", "sick:1 unhealthy 0: its checks fail: status 500",
			"late:1 up 0: its last check failed: status 500", "down:1 down 0: so it is configured", "idle:1 drained 0: no further requests; none is in flight", "busy:1 up 0: ",
		}
		if got := states(p); !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if err := g.SetDrained("shaky:1", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		got := states(p)
		if got[0] != "failing:1 probing 0: it failed, and gets one request at a time until one succeeds" || got[1] != "shaky:1 drained 1: no further requests; 1 is in flight" {
			t.Errorf("later %q", got)
		}
		lease.Done(upstream.Outcome{Status: 200})
	})
}

func states(p *statuspage.Page) (list []string) {
	for _, g := range p.Snapshot().Groups {
		for _, t := range g.Targets {
			list = append(list, fmt.Sprintf("%s %s %d: %s", t.Addr, t.State, t.InFlight, t.Why))
		}
	}
	return list
}

// The names of the JSON are a promise.
func TestJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, upstream.Options{Name: "app"}, upstream.Target{Addr: "a:1", MaxConns: 2})
		defer g.Close()
		p := newPage(t, of(g))
		p.RequestStarted(nil)
		p.RequestStarted(nil)
		p.RequestEnded(nil, filters.Observation{ResponseStats: culvert.ResponseStats{Status: 502}, Result: &culvert.Result{Upstream: "app",
			Attempts: []culvert.Attempt{{Target: "a:1", Status: 500}, {Target: "b:1", Status: 200}}}})
		time.Sleep(time.Second)
		got, err := json.Marshal(p.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"title":"culvert","time":"TIME+1","since":"TIME","inFlight":1,"requests":{"total":1,"errors":1,"rate":0.1,"errorRate":0.1},` +
			`"groups":[{"name":"app","scheme":"http","inFlight":0,"waiting":0,"requests":{"total":1,"errors":1,"rate":0.1,"errorRate":0.1},` +
			`"targets":[{"addr":"a:1","state":"up","healthy":true,"weight":1,"inFlight":0,"maxConns":2,"fails":0,"requests":{"total":1,"errors":1,"rate":0.1,"errorRate":0.1}}],"drainable":true}],` +
			`"tunnels":{"open":0,"oldest":[]}}`
		now := time.Now()
		text := strings.NewReplacer(now.Format(time.RFC3339Nano), "TIME+1", now.Add(-time.Second).Format(time.RFC3339Nano), "TIME").Replace(string(got))
		if text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// gateway is a proxy with a page beside it, whose only target echoes WebSockets, and responds with 500 to /broken.
func gateway(t *testing.T, o statuspage.Options) (addr string, p *statuspage.Page, g *upstream.Group) {
	t.Helper()
	leaktest.Check(t)
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !websocket.IsWebSocketUpgrade(r) {
			if r.URL.Path == "/broken" {
				w.WriteHeader(500)
			}
			return
		}
		conn, err := (&websocket.Upgrader{Subprotocols: []string{"chat"}}).Upgrade(w, r, nil)
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
	g = newGroup(t, upstream.Options{Name: "app"}, upstream.Target{Addr: target, MaxFails: -1})
	registry, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	forward, err := proxy.New(proxy.Options{Upstream: g, Upgrades: upgrades})
	if err != nil {
		t.Fatal(err)
	}
	o.Groups, o.Tunnels = of(g).Groups, registry
	p = newPage(t, o)
	mux := http.NewServeMux()
	mux.Handle("/", forward)
	mux.Handle("/ops/", http.StripPrefix("/ops", p))
	t.Cleanup(p.Close)
	return wiretest.Serve(t, filters.NewChain(filters.Observe(p)).Then(mux)), p, g
}

// A tunnel is shown with its ends, its age and its bytes; requests are counted for their group and their targets.
func TestGateway(t *testing.T) {
	addr, _, g := gateway(t, statuspage.Options{Interval: time.Nanosecond})
	conn, _, err := (&websocket.Dialer{Subprotocols: []string{"chat"}}).Dial("ws://"+addr+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	exchange(t, addr, "GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	exchange(t, addr, "GET /broken HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	var target string
	for s := range g.Targets() {
		target = s.Target.Addr
	}
	// A response is received before its request has ended.
	var s statuspage.Snapshot
	for len(s.Groups) == 0 || s.Groups[0].Requests.Total < 2 || s.InFlight > 2 || s.Tunnels.Oldest[0].ToClient == 0 {
		_, body := exchange(t, addr, "GET /ops/status?json HTTP/1.1\r\nHost: a\r\n\r\n")
		s = statuspage.Snapshot{}
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatal(err)
		}
	}
	group := s.Groups[0]
	if group.Requests.Errors != 1 || group.InFlight != 1 || group.Targets[0].Addr != target || group.Targets[0].Requests.Total != 2 || group.Targets[0].Requests.Errors != 1 {
		t.Errorf("group %+v", group)
	}
	if s.Tunnels.Open != 1 || len(s.Tunnels.Oldest) != 1 {
		t.Fatalf("tunnels %+v", s.Tunnels)
	}
	client, _, _ := strings.Cut(conn.LocalAddr().String(), ":")
	if u := s.Tunnels.Oldest[0]; u.ID != 1 || u.Protocol != "websocket" || u.Subprotocol != "chat" || u.Target != target || !strings.HasPrefix(u.Client, client) ||
		u.ToTarget != 11 || u.ToClient != 7 || u.Start.IsZero() || u.Age < u.Idle {
		t.Errorf("tunnel %+v", u)
	}
	_, page := exchange(t, addr, "GET /ops/status HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, want := range []string{"<td>websocket <small>chat</small></td>", "<td>11 B</td><td>7 B</td>", "<td>" + target + "</td>", "<h2>app <small>http</small></h2>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<form") {
		t.Error("a page that is read-only has buttons")
	}
}

// post sends a change.
func post(t *testing.T, addr string, form url.Values, fields ...string) (*http.Response, string) {
	t.Helper()
	body := form.Encode()
	request := fmt.Sprintf("POST /ops/status HTTP/1.1\r\nHost: gateway.test\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n", len(body))
	for _, field := range fields {
		request += field + "\r\n"
	}
	return exchange(t, addr, request+"\r\n"+body)
}

func TestChanges(t *testing.T) {
	addr, _, g := gateway(t, statuspage.Options{Authorize: permit, Interval: time.Hour})
	var target string
	drained := func() (drained bool) {
		for s := range g.Targets() {
			target, drained = s.Target.Addr, s.Drained
		}
		return drained
	}
	drained()
	drain := url.Values{"do": {"drain"}, "group": {"app"}, "scheme": {"http"}, "target": {target}}
	change := func(key, value string) url.Values {
		v := url.Values{}
		for k := range drain {
			v.Set(k, drain.Get(k))
		}
		v.Set(key, value)
		return v
	}
	const operator = "X-Operator: yes"
	for _, test := range []struct {
		name   string
		form   url.Values
		fields []string
		status int
	}{
		{"not authorized", drain, nil, 403},
		{"by another site", drain, []string{operator, "Sec-Fetch-Site: cross-site"}, 403},
		{"by a sibling site", drain, []string{operator, "Sec-Fetch-Site: same-site"}, 403},
		{"by another origin", drain, []string{operator, "Origin: https://evil.test"}, 403},
		{"by no origin", drain, []string{operator, "Origin: null"}, 403},
		{"unknown", change("do", "explode"), []string{operator}, 400},
		{"too long", change("target", strings.Repeat("a", 9<<10)), []string{operator}, 400},
		{"no such group", change("group", "other"), []string{operator}, 404},
		{"no such scheme", change("scheme", "https"), []string{operator}, 404},
		{"no such target", change("target", "a:1"), []string{operator}, 404},
		{"no such tunnel", url.Values{"do": {"close"}, "tunnel": {"7"}}, []string{operator}, 404},
		{"no tunnel", url.Values{"do": {"close"}, "tunnel": {"x"}}, []string{operator}, 404},
	} {
		resp, body := post(t, addr, test.form, test.fields...)
		if resp.StatusCode != test.status || resp.Header.Get("Cache-Control") != "no-store" || drained() {
			t.Errorf("%s: %s %q %v, drained %v", test.name, resp.Status, body, resp.Header, drained())
		}
	}
	for _, field := range []string{"Sec-Fetch-Site: same-origin", "Origin: http://gateway.test", "X-From: curl"} {
		for _, do := range []string{"drain", "undrain"} {
			resp, _ := post(t, addr, change("do", do), operator, field)
			if resp.StatusCode != 303 || resp.Header.Get("Location") != "?" || drained() != (do == "drain") {
				t.Errorf("%s, %s: %s %q, drained %v", do, field, resp.Status, resp.Header.Get("Location"), drained())
			}
			next := map[string]string{"drain": "undrain", "undrain": "drain"}[do]
			button := fmt.Sprintf(`<button aria-label="%s %s">%[1]s</button>`, next, target)
			if _, page := exchange(t, addr, "GET /ops/status HTTP/1.1\r\nHost: a\r\n"+operator+"\r\n\r\n"); !strings.Contains(page, button) || strings.Count(page, "<button") != 1 {
				t.Errorf("the page after %s has no %s:\n%s", do, button, page)
			}
		}
	}
	if _, page := exchange(t, addr, "GET /ops/status HTTP/1.1\r\nHost: a\r\n\r\n"); strings.Contains(page, "<form") {
		t.Errorf("others have buttons:\n%s", page)
	}
}

// A tunnel is closed by a Close frame, and the page does not show it any more.
func TestCloseTunnel(t *testing.T) {
	addr, p, _ := gateway(t, statuspage.Options{Authorize: permit, Interval: time.Nanosecond})
	conn, _, err := websocket.DefaultDialer.Dial("ws://"+addr+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var list []statuspage.Tunnel
	for len(list) == 0 { // the client has its 101 before the tunnel is listed
		list = p.Snapshot().Tunnels.Oldest
	}
	id := list[0].ID
	if resp, body := post(t, addr, url.Values{"do": {"close"}, "tunnel": {fmt.Sprint(id)}}, "X-Operator: yes"); resp.StatusCode != 303 {
		t.Fatalf("%s %q", resp.Status, body)
	}
	_, _, err = conn.ReadMessage()
	if closed := (*websocket.CloseError)(nil); !errors.As(err, &closed) || closed.Code != wsupgrade.GoingAway || closed.Text != "closed by an operator" {
		t.Errorf("the client saw %v", err)
	}
}

// Large gateways have a page as well.
func TestBounds(t *testing.T) {
	var targets []upstream.Target
	for i := range 1003 {
		targets = append(targets, upstream.Target{Addr: fmt.Sprintf("a:%d", i+1)})
	}
	p := newPage(t, of(newGroup(t, upstream.Options{}, targets...)))
	if g := p.Snapshot().Groups[0]; len(g.Targets) != 1000 || g.More != 3 {
		t.Errorf("%d targets and %d more", len(g.Targets), g.More)
	}
	addr := wiretest.Serve(t, p)
	if _, body := exchange(t, addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.Contains(body, "<p>and 3 more</p>") {
		t.Error("the page does not say that there are more")
	}
	for _, o := range []statuspage.Options{{Interval: -1}, {MaxStreams: -1}} {
		if _, err := statuspage.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// Targets that requests name are shown, but can't be drained.
func TestDynamic(t *testing.T) {
	d, err := upstream.NewDynamic(upstream.DynamicOptions{Choose: func(r *http.Request) (upstream.Target, error) { return upstream.Target{Addr: r.Host}, nil },
		Group: upstream.Options{Name: "named", Scheme: "https"}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "a:1"
	lease, err := d.Pick(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Done(upstream.Outcome{Status: 200})
	p := newPage(t, statuspage.Options{Groups: slices.Values([]statuspage.Upstream{d}), Authorize: permit})
	g := p.Snapshot().Groups[0]
	if g.Name != "named" || g.Scheme != "https" || g.InFlight != 1 || g.Drainable || len(g.Targets) != 1 || g.Targets[0].Addr != "a:1" || g.Targets[0].InFlight != 1 {
		t.Errorf("%+v", g)
	}
	addr := wiretest.Serve(t, p)
	if _, page := exchange(t, addr, "GET / HTTP/1.1\r\nHost: a\r\nX-Operator: yes\r\n\r\n"); !strings.Contains(page, "<td>a:1</td>") || strings.Contains(page, "<form") {
		t.Errorf("the page:\n%s", page)
	}
	form := url.Values{"do": {"drain"}, "group": {"named"}, "scheme": {"https"}, "target": {"a:1"}}
	if resp, _ := post(t, addr, form, "X-Operator: yes"); resp.StatusCode != 404 {
		t.Errorf("drained: %s", resp.Status)
	}
}
