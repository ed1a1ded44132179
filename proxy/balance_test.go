package proxy_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// cluster is a proxy with a few servers behind it, all on sockets. A server responds
// with its name. What package upstream tests by its leases, in virtual time, is tested
// here as a client sees it.
type cluster struct {
	t     *testing.T
	group *upstream.Group
	addr  string // of the proxy
	at    map[string]string
	held  chan string   // receives the name of each server that got a request for /hold
	let   chan struct{} // releases one of those requests

	mu       sync.Mutex
	status   map[string]int // 0: 200; below 0: the server breaks off
	requests map[string]int
}

// newCluster starts the servers "a b c". Their targets are given by their names.
func newCluster(t *testing.T, via path, o upstream.Options, retry proxy.Retry, targets ...upstream.Target) *cluster {
	t.Helper()
	c := &cluster{t: t, at: map[string]string{}, held: make(chan string, 100), let: make(chan struct{}),
		status: map[string]int{}, requests: map[string]int{}}
	for _, name := range []string{"a", "b", "c"} {
		c.at[name] = wiretest.Serve(t, c.server(name))
	}
	o.Name = "app"
	c.group = groupOf(t, o, c.located(targets)...)
	p := newProxy(t, via, proxy.Options{Upstream: c.group, Retry: retry})
	c.addr = wiretest.Serve(t, filters.NewChain(trusting(t)).Then(p))
	return c
}

func (c *cluster) located(targets []upstream.Target) []upstream.Target {
	located := slices.Clone(targets)
	for i := range located {
		located[i].Addr = c.at[located[i].Addr]
	}
	return located
}

func (c *cluster) server(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests[name]++
		status := c.status[name]
		c.mu.Unlock()
		if r.URL.Path == "/hold" {
			c.held <- name
			<-c.let
		}
		if status < 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(max(200, status))
		_, _ = io.WriteString(w, name)
	}
}

// turn makes a server respond with a status, or break off (-1).
func (c *cluster) turn(name string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status[name] = status
}

// get sends a GET with the header fields. It returns the name of the server that has
// responded with 200, or another status.
func (c *cluster) get(target string, fields ...string) string {
	c.t.Helper()
	resp, body := c.request(target, fields...)
	if resp.StatusCode != 200 {
		return fmt.Sprint(resp.StatusCode)
	}
	return body
}

func (c *cluster) request(target string, fields ...string) (*http.Response, string) {
	c.t.Helper()
	client := wiretest.Dial(c.t, c.addr)
	defer client.Close()
	client.Send("GET " + target + " HTTP/1.1\r\nHost: a\r\n" + strings.Join(fields, "") + "\r\n")
	return client.Response("GET")
}

// want sends as many GETs as want has words.
func (c *cluster) want(want string) {
	c.t.Helper()
	var got []string
	for range strings.Fields(want) {
		got = append(got, c.get("/"))
	}
	if s := strings.Join(got, " "); s != want {
		c.t.Errorf("the responses are from %q, want %q", s, want)
	}
}

// hold sends a GET that the server holds. It returns the server's name, and a channel that
// receives that of the response.
func (c *cluster) hold() (name string, responder <-chan string) {
	c.t.Helper()
	responder = c.begin()
	return wiretest.Await(c.t, c.held, "held request"), responder
}

func (c *cluster) begin() <-chan string {
	responder := make(chan string, 1)
	go func() { responder <- c.get("/hold") }()
	return responder
}

// release lets n held requests go.
func (c *cluster) release(n int) {
	for range n {
		c.let <- struct{}{}
	}
}

var three = []upstream.Target{{Addr: "a"}, {Addr: "b"}, {Addr: "c"}}

func TestBalanceOverSockets(t *testing.T) { onPaths(t, testBalanceOverSockets) }
func testBalanceOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	retry := proxy.Retry{Errors: true}
	t.Run("weights", func(t *testing.T) {
		newCluster(t, via, upstream.Options{}, retry, upstream.Target{Addr: "a", Weight: 5}, three[1], three[2]).want("a a b a c a a")
	})
	t.Run("down and backup", func(t *testing.T) {
		c := newCluster(t, via, upstream.Options{}, retry, upstream.Target{Addr: "a", Down: true}, three[1], upstream.Target{Addr: "c", Backup: true})
		c.want("b b b")
		c.turn("b", -1)
		c.want("c c c")
	})
	t.Run("first", func(t *testing.T) {
		c := newCluster(t, via, upstream.Options{Balance: upstream.First()}, retry, three...)
		c.want("a a")
		c.turn("a", -1)
		c.want("b b")
	})
	t.Run("least connections", func(t *testing.T) {
		c := newCluster(t, via, upstream.Options{Balance: upstream.LeastConn()}, retry, three...)
		a, first := c.hold()
		b, second := c.hold()
		if a != "a" || b != "b" {
			t.Errorf("held by %s and %s", a, b)
		}
		c.want("c c c")
		c.release(2)
		wiretest.Await(t, first, "response")
		wiretest.Await(t, second, "response")
	})
	t.Run("random two", func(t *testing.T) {
		c := newCluster(t, via, upstream.Options{Balance: upstream.RandomTwo()}, retry, three...)
		at := map[string]int{}
		var responders []<-chan string
		for range 30 {
			name, responder := c.hold()
			at[name]++
			responders = append(responders, responder)
		}
		// Of two targets the one with fewer requests is selected, so none has far fewer than the others.
		if least := slices.Min(slices.Collect(maps.Values(at))); len(at) != 3 || least < 6 {
			t.Errorf("held by %v", at)
		}
		c.release(30)
		for _, responder := range responders {
			wiretest.Await(t, responder, "response")
		}
	})
	t.Run("ip_hash", func(t *testing.T) {
		c := newCluster(t, via, upstream.Options{Balance: upstream.IPHash()}, retry, three...)
		c.wantStable(func(i, _ int) (string, string) { return "/", fmt.Sprintf("X-Forwarded-For: 10.1.%d.9\r\n", i) })
	})
	t.Run("hash", func(t *testing.T) {
		byKey := upstream.Hash(func(r *http.Request) string { return r.URL.Query().Get("k") })
		c := newCluster(t, via, upstream.Options{Balance: byKey}, retry, three...)
		home := c.wantStable(func(i, n int) (string, string) { return fmt.Sprintf("/?n=%d&k=%d", n, i), "" })
		if err := c.group.Set(c.located(three[:2])...); err != nil {
			t.Fatal(err)
		}
		for i, before := range home {
			if now := c.get(fmt.Sprintf("/?k=%d", i)); before != "c" && now != before {
				t.Errorf("key %d went from %s to %s when c had left", i, before, now)
			}
		}
	})
}

// wantStable sends requests of 30 clients, three of each, checks that each client
// keeps its target and that there is more than one, and returns the target of each client.
func (c *cluster) wantStable(request func(client, n int) (target, field string)) []string {
	c.t.Helper()
	var home []string
	for i := range 30 {
		var got []string
		for n := range 3 {
			target, field := request(i, n)
			got = append(got, c.get(target, field))
		}
		if len(slices.Compact(slices.Clone(got))) != 1 {
			c.t.Errorf("client %d got responses from %v", i, got)
		}
		home = append(home, got[0])
	}
	if !slices.Contains(home, "a") || !slices.Contains(home, "b") || !slices.Contains(home, "c") {
		c.t.Errorf("some targets got no request: %v", home)
	}
	return home
}

// A client that has its cookie is with its target for good, and moves when that is
// gone. A forged cookie selects no target.
func TestStickyOverSockets(t *testing.T) { onPaths(t, testStickyOverSockets) }
func testStickyOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	c := newCluster(t, via, upstream.Options{Balance: upstream.Sticky(upstream.StickyOptions{Secret: []byte("s")})}, proxy.Retry{Errors: true}, three...)
	resp, home := c.request("/")
	cookie := "Cookie: x=y; culvert=" + resp.Cookies()[0].Value + "\r\n"
	for range 4 {
		resp, body := c.request("/", cookie)
		if body != home || len(resp.Cookies()) != 0 {
			t.Errorf("the response is from %s with %v, want %s", body, resp.Cookies(), home)
		}
	}
	made := map[string]bool{}
	for range 3 {
		made[c.get("/", "Cookie: culvert="+strings.Repeat("0", len(resp.Cookies()[0].Value))+"\r\n")] = true
	}
	if len(made) != 3 {
		t.Errorf("a cookie that was made up chose %v", made)
	}
	c.turn(home, -1)
	moved, body := c.request("/", cookie)
	if body == home || len(moved.Cookies()) != 1 || moved.Cookies()[0].Value == resp.Cookies()[0].Value {
		t.Errorf("the response is from %s with %v", body, moved.Cookies())
	}
}

func TestHealthOverSockets(t *testing.T) { onPaths(t, testHealthOverSockets) }
func testHealthOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	for name, test := range map[string]struct {
		o    upstream.Options
		a    int // what a does
		want string
	}{
		"errors":    {upstream.Options{}, -1, "b c b c"},
		"a status":  {upstream.Options{FailStatuses: []int{500}}, 500, "500 b c b c"},
		"no status": {upstream.Options{}, 500, "500 b c 500"},
		"latency":   {upstream.Options{FailLatency: 1}, 200, "a b c c"}, // the last one is not taken out
		"all out":   {upstream.Options{FailLatency: 1, MaxEjected: 1}, 200, "a b c 503"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, via, test.o, proxy.Retry{Errors: true}, three...)
			c.turn("a", test.a)
			c.want(test.want)
			if err := c.group.Set(c.located(three[:2])...); err != nil {
				t.Fatal(err)
			}
			if test.a < 0 { // what was known of a is known still
				c.want("b b b")
			}
		})
	}
}

// A target that comes back gets no more than a little at first.
func TestSlowStartOverSockets(t *testing.T) { onPaths(t, testSlowStartOverSockets) }
func testSlowStartOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	c := newCluster(t, via, upstream.Options{SlowStart: time.Hour}, proxy.Retry{Errors: true}, upstream.Target{Addr: "a", FailTimeout: 20 * time.Millisecond}, three[1])
	c.turn("a", -1)
	c.want("b")
	c.turn("a", 200)
	for i := 0; c.get("/") != "a"; i++ {
		if i == 10000 {
			t.Fatal("a did not come back")
		}
	}
	a := 0
	for range 200 {
		if c.get("/") == "a" {
			a++
		}
	}
	if a > 10 {
		t.Errorf("a got %d of 200", a)
	}
}

func TestQueueOverSockets(t *testing.T) { onPaths(t, testQueueOverSockets) }
func testQueueOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	c := newCluster(t, via, upstream.Options{Queue: 1}, proxy.Retry{}, upstream.Target{Addr: "a", MaxConns: 1})
	_, first := c.hold()
	second := c.begin()
	for range 2000 {
		if c.group.Waiting() == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.want("503") // the queue is full
	if n := len(c.held); n != 0 {
		t.Errorf("%d more were let through", n)
	}
	c.release(2)
	if a, b := wiretest.Await(t, first, "response"), wiretest.Await(t, second, "response"); a != "a" || b != "a" {
		t.Errorf("responses from %s and %s", a, b)
	}
}

// Who waits too long, or comes when the group is full, is refused.
func TestRefusedOverSockets(t *testing.T) { onPaths(t, testRefusedOverSockets) }
func testRefusedOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	for name, o := range map[string]upstream.Options{
		"MaxConns":         {},
		"the wait is over": {Queue: 1, QueueTimeout: time.Millisecond},
		"MaxInFlight":      {MaxInFlight: 1},
	} {
		t.Run(name, func(t *testing.T) {
			max := 1 - o.MaxInFlight
			c := newCluster(t, via, o, proxy.Retry{}, upstream.Target{Addr: "a", MaxConns: max})
			_, first := c.hold()
			c.want("503 503")
			c.release(1)
			if got := wiretest.Await(t, first, "response"); got != "a" {
				t.Errorf("response from %s", got)
			}
		})
	}
}

// One upstream group drains, requests in flight included, while another continues to serve.
func TestDrainOverSockets(t *testing.T) { onPaths(t, testDrainOverSockets) }
func testDrainOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	old, other := newCluster(t, via, upstream.Options{}, proxy.Retry{}, three...), newCluster(t, via, upstream.Options{}, proxy.Retry{}, three...)
	_, first := old.hold()
	drained := make(chan error, 1)
	go func() { drained <- old.group.Drain(t.Context()) }()
	for i := 0; old.get("/") != "503"; i++ {
		if i == 10000 {
			t.Fatal("requests are taken still")
		}
	}
	other.want("a b c")
	if len(drained) != 0 {
		t.Error("drained with a request in flight")
	}
	old.release(1)
	if got := wiretest.Await(t, first, "response"); got != "a" {
		t.Errorf("response from %s", got)
	}
	if err := wiretest.Await(t, drained, "end of the drain"); err != nil {
		t.Error(err)
	}
}

// A budget of a half lets every second request be retried; without time there is no
// second target.
func TestRetryBoundsOverSockets(t *testing.T) { onPaths(t, testRetryBoundsOverSockets) }
func testRetryBoundsOverSockets(t *testing.T, via path) {
	leaktest.Check(t)
	budget, err := proxy.NewRetryBudget(0.5, 0)
	if err != nil {
		t.Fatal(err)
	}
	broken := upstream.Target{Addr: "a", MaxFails: -1}
	c := newCluster(t, via, upstream.Options{Balance: upstream.First()}, proxy.Retry{Errors: true, Budget: budget}, broken, three[1])
	c.turn("a", -1)
	c.want("502 b 502 b 502 b")
	c = newCluster(t, via, upstream.Options{Balance: upstream.First()}, proxy.Retry{Errors: true, Timeout: 1}, broken, three[1])
	c.turn("a", -1)
	c.want("502 502")
	c = newCluster(t, via, upstream.Options{Balance: upstream.First()}, proxy.Retry{Errors: true, Tries: 2}, broken, upstream.Target{Addr: "b", MaxFails: -1}, three[2])
	c.turn("a", -1)
	c.turn("b", -1)
	c.want("502 502")
}
