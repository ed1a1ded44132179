package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// panicsOnce is something of a user's that panics when it is first called.
type panicsOnce struct{ called atomic.Bool }

func (p *panicsOnce) call() {
	if !p.called.Swap(true) {
		panic("a bug")
	}
}

type panickyBody struct {
	io.ReadCloser
	bug *panicsOnce
}

func (b panickyBody) Read(p []byte) (int, error) {
	b.bug.call()
	return b.ReadCloser.Read(p)
}

// panickyTransport gives out bodies that panic.
type panickyTransport struct {
	http.RoundTripper
	bug *panicsOnce
}

func (t panickyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = panickyBody{resp.Body, t.bug}
	}
	return resp, err
}

// A user's function that panics, on any goroutine, ends its own exchange as a panic of the handler would. It ends neither
// the program nor another exchange, and does not count against the target.
func TestPanicOfAHook(t *testing.T) { onPaths(t, testPanicOfAHook) }
func testPanicOfAHook(t *testing.T, via path) {
	const (
		get     = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		sized   = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
		chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"
	)
	dials := func(_ *proxy.Options, g *upstream.Options, bug *panicsOnce) func(*http.Request) {
		g.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			bug.call()
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
		return nil
	}
	reads := func(_ *proxy.Options, _ *upstream.Options, bug *panicsOnce) func(*http.Request) {
		return func(r *http.Request) { r.Body = panickyBody{r.Body, bug} }
	}
	trailers := func(o *proxy.Options, _ *upstream.Options, bug *panicsOnce) func(*http.Request) {
		o.RequestTrailer = func(string) bool { bug.call(); return true }
		return nil
	}
	buffers := func(o *proxy.Options, g *upstream.Options, bug *panicsOnce) func(*http.Request) {
		o.ResponseBuffer = &proxy.Buffer{}
		transport, err := upstream.NewTransport(*g)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(transport.CloseIdleConnections)
		o.Transport = panickyTransport{transport, bug}
		return nil
	}
	for name, test := range map[string]struct {
		request string
		hook    func(*proxy.Options, *upstream.Options, *panicsOnce) func(*http.Request)
	}{
		"DialContext":                     {get, dials},
		"DialContext, a body":             {chunked, dials},
		"a filter's body":                 {sized, reads},
		"a filter's body, chunked":        {chunked, reads},
		"RequestTrailer":                  {chunked, trailers},
		"a transport's body, that's held": {get, buffers},
	} {
		for _, protocol := range []upstream.Protocol{upstream.HTTP1, upstream.H2C} {
			t.Run(name, func(t *testing.T) {
				leaktest.Check(t)
				target := echoTarget(t, protocol)
				bug := new(panicsOnce)
				var o proxy.Options
				group := upstream.Options{Protocol: protocol}
				before := test.hook(&o, &group, bug)
				o.Upstream = groupOf(t, group, upstream.Target{Addr: target, MaxFails: 1})
				failures := make(chan *culvert.Error, 2)
				o.OnError = func(_ *http.Request, e *culvert.Error) { failures <- e }
				p := newProxy(t, via, o)
				addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if before != nil {
						before(r)
					}
					p.ServeHTTP(w, r)
				}))
				first := wiretest.Dial(t, addr)
				first.Send(test.request)
				first.Ended()
				if !bug.called.Load() {
					t.Error("nothing has panicked")
				}
				second := wiretest.Dial(t, addr)
				second.Send(test.request)
				second.Status(http.StatusOK)
				select {
				case e := <-failures:
					t.Errorf("a failure: %v, %v", e, errors.Unwrap(e))
				default:
				}
			})
		}
	}
}

func drained(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "page")
}

// echoTarget is a target that reads its requests to their ends, and sends interim responses before.
func echoTarget(t *testing.T, protocol upstream.Protocol, interim ...int) string {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, status := range interim {
			w.WriteHeader(status)
		}
		drained(w, r)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(protocol == upstream.HTTP1)
	s.Config.Protocols.SetUnencryptedHTTP2(protocol == upstream.H2C)
	s.Config.ErrorLog = wiretest.Quiet()
	wiretest.Start(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
