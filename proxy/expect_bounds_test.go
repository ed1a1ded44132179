package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

const expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

// A target that begins a response's header and does not end it holds a request whose body it has not requested no longer
// than any other request.
func TestBoundsBeforeAnExpectedBody(t *testing.T) { onPaths(t, testBoundsBeforeAnExpectedBody) }
func testBoundsBeforeAnExpectedBody(t *testing.T, via path) {
	for name, test := range map[string]struct {
		o proxy.Options
		u upstream.Options
	}{
		"HeaderTimeout": {proxy.Options{}, upstream.Options{HeaderTimeout: soon}},
		"Timeout":       {proxy.Options{Timeout: 1200 * time.Millisecond}, upstream.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed failures
				test.o.OnError = failed.add
				client, _ := inBubble(t, via, test.o, test.u, func(p *wiretest.Peer) {
					p.Header()
					p.Send("H")
					p.Ended()
				})
				client.Send(expecting)
				client.Status(504)
				if e := failed.only(t); e.Kind != culvert.Timeout || !e.TargetSide() {
					t.Errorf("failure %#v", e)
				}
			})
		})
	}
}

// No bound of a header or of a read ends an exchange whose response's header was received, and whose target has not requested
// the body: a client that only listens, and never sends what was refused, is not too slow.
func TestNoBoundBesideAnExpectedBody(t *testing.T) { onPaths(t, testNoBoundBesideAnExpectedBody) }
func testNoBoundBesideAnExpectedBody(t *testing.T, via path) {
	for name, test := range map[string]struct {
		o proxy.Options
		u upstream.Options
	}{
		"HeaderTimeout": {proxy.Options{}, upstream.Options{HeaderTimeout: 2 * soon}},
		"ReadTimeout":   {proxy.Options{ReadTimeout: soon}, upstream.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := inBubble(t, via, test.o, test.u, func(p *wiretest.Peer) {
					p.Header()
					p.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
					if !quietFor(p, 8*soon) {
						t.Error("the exchange has ended")
						return
					}
					p.Send("1\r\ny\r\n0\r\n\r\n")
					p.Ended()
				})
				client.Send(expecting)
				client.Header()
				client.Receive("1\r\nx\r\n1\r\ny\r\n0\r\n\r\n")
			})
		})
	}
}

// A target that ignores Expect and has not had the body is not to blame for a request's time.
func TestBlameForWithholdingTheBody(t *testing.T) { onPaths(t, testBlameForWithholdingTheBody) }
func testBlameForWithholdingTheBody(t *testing.T, via path) {
	const limit = 900 * time.Millisecond // less than a target may think about Expect
	const served, late = "HTTP/1.1 200 ", "HTTP/1.1 504 "
	timeout, err := filters.Timeout(limit)
	if err != nil {
		t.Fatal(err)
	}
	inTime := served
	if via == httpTransport {
		inTime = "" // either: net/http's transport may hold the body back for longer
	}
	for name, test := range map[string]struct {
		o      proxy.Options
		around []culvert.Filter
		want   string
	}{
		"Timeout": {proxy.Options{Timeout: limit}, nil, inTime}, // the body is sent before the time is over
		"filter":  {proxy.Options{}, []culvert.Filter{timeout}, late},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, group := inBubble(t, via, test.o, upstream.Options{}, func(p *wiretest.Peer) {
					p.Header()
					if _, err := p.R.Peek(len("hello")); err == nil {
						p.Send(ok)
					}
					p.Ended()
				}, test.around...)
				client.Send(expecting)
				go func() { _, _ = io.WriteString(client, "hello") }() // until the connection ends
				got := client.Header()
				if strings.HasPrefix(got, "HTTP/1.1 100 ") {
					got = client.Header()
				}
				if !strings.HasPrefix(got, test.want) || !strings.HasPrefix(got, served) && !strings.HasPrefix(got, late) {
					t.Errorf("the client got %q, want %q", got, test.want)
				}
				time.Sleep(time.Second)
				if n := failsOf(group); n != 0 {
					t.Errorf("%d failures of the target", n)
				}
			})
		})
	}
}

// At the end of a request's time the contexts derived from its own end one after the other. A transport that fails since a
// read of the body has noticed the end first has met it as well: the target was too slow, and its response is not invalid.
func TestTimeNoticedByTheBodyFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := &slowContext{Context: t.Context(), done: make(chan struct{})}
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GotFirstResponseByte()
			ctx.end()
			_, err := r.Body.Read(make([]byte, 8)) // as net/http's transport does when it has waited for a 100
			return nil, err
		})
		var failed failures
		group := groupAt(t, upstream.Options{}, "192.0.2.1:80")
		p := newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: transport, OnError: failed.add})
		defer group.Close()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("hello"))
		r.Header.Set("Expect", "100-continue")
		w := httptest.NewRecorder()
		served := make(chan struct{})
		go func() { defer close(served); p.ServeHTTP(w, r) }()
		synctest.Wait()
		ctx.tell()
		<-served
		if e := failed.only(t); w.Code != http.StatusGatewayTimeout || e.Kind != culvert.Timeout {
			t.Errorf("status %d, failure %#v", w.Code, e)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slowContext is a context whose derived contexts end later than it does itself.
type slowContext struct {
	context.Context
	done chan struct{}

	mu    sync.Mutex
	err   error
	after []func()
}

func (c *slowContext) Done() <-chan struct{} { return c.done }

func (c *slowContext) Value(any) any { return nil }

func (c *slowContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc is called by package context.
func (c *slowContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = append(c.after, f)
	return func() bool { return false }
}

func (c *slowContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = context.DeadlineExceeded
	close(c.done)
}

func (c *slowContext) tell() {
	for _, f := range c.after {
		f()
	}
}
