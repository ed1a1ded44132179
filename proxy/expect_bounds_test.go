package proxy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

const expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

// A target that begins a response's header and does not end it holds a request whose body it has not asked for no longer
// than the bounds of each request.
func TestBoundsBeforeAnExpectedBody(t *testing.T) {
	leaktest.Check(t)
	type test struct {
		name string
		o    proxy.Options
		u    upstream.Options
	}
	atOnce(t, []test{
		{"HeaderTimeout", proxy.Options{}, upstream.Options{HeaderTimeout: soon}},
		{"Timeout", proxy.Options{Timeout: 1200 * time.Millisecond}, upstream.Options{}},
	}, func(c test) string { return c.name }, func(t *testing.T, test test) {
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Head()
			p.Send("H")
			p.Ended()
		})
		var failed failures
		test.o.OnError = failed.add
		test.o.Upstream = groupOf(t, test.u, upstream.Target{Addr: target, FailTimeout: time.Hour})
		client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, test.o)))
		client.Send(expecting)
		client.Status(504)
		failed.await(t)
		if e := failed.only(t); e.Kind != proxy.Timeout || e.Target != target {
			t.Errorf("failure %#v", e)
		}
	})
}

// A response's header that has ended in time bounds nothing behind it, though the body was never asked for.
func TestHeaderBeforeAnExpectedBody(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Head()
		p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
		if !quietFor(p, 4*soon) {
			t.Error("the exchange has ended")
			return
		}
		p.Send("1\r\ny\r\n0\r\n\r\n")
		p.Ended()
	})
	client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, proxy.Options{Upstream: groupAt(t, upstream.Options{HeaderTimeout: 2 * soon}, target)})))
	client.Send(expecting)
	client.Head()
	client.Receive("1\r\nx\r\n1\r\ny\r\n0\r\n\r\n")
}

// A target that ignores Expect and has not had the body is not to blame for a request's time.
func TestBlameForWithholdingTheBody(t *testing.T) {
	leaktest.Check(t)
	const limit = 900 * time.Millisecond // less than a target may think about Expect
	timeout, err := filters.Timeout(limit)
	if err != nil {
		t.Fatal(err)
	}
	type test struct {
		name   string
		o      proxy.Options
		around []filters.Filter
		serves bool // the body is sent before the time is over
	}
	atOnce(t, []test{
		{"Timeout", proxy.Options{Timeout: limit}, nil, !onStandardPath}, // net/http's transport waits for a second
		{"filter", proxy.Options{}, []filters.Filter{timeout}, false},
	}, func(c test) string { return c.name }, func(t *testing.T, test test) {
		target := wiretest.Target(t, func(p *wiretest.Peer) {
			p.Head()
			if test.serves {
				p.Receive("hello")
				p.Send(ok)
			}
			p.Ended()
		})
		group := groupOf(t, upstream.Options{}, upstream.Target{Addr: target, FailTimeout: time.Hour})
		test.o.Upstream = group
		client := wiretest.Dial(t, wiretest.Serve(t, filters.NewChain(test.around...).Then(newProxy(t, test.o))))
		client.Send(expecting + "hello")
		got := client.Head()
		if strings.HasPrefix(got, "HTTP/1.1 100 ") {
			got = client.Head()
		}
		if want := map[bool]string{true: "HTTP/1.1 200 ", false: "HTTP/1.1 504 "}[test.serves]; !strings.HasPrefix(got, want) {
			t.Errorf("the client got %q, want %q", got, want)
		}
		client.Close()
		deadline := time.Now().Add(5 * time.Second)
		for group.InFlight() > 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if n := failsOf(group); n != 0 {
			t.Errorf("%d failures of the target", n)
		}
	})
}
