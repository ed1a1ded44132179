package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// ownFault sends a request through a group of two targets, each of which is taken out by its first
// failure, and checks that the first still gets requests.
func ownFault(t *testing.T, via path, o proxy.Options, around culvert.Filter, request string) (status int, failed *failures) {
	t.Helper()
	first := wiretest.Target(t, func(p *wiretest.Peer) {
		for {
			r, err := http.ReadRequest(p.R)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			p.Send(ok)
		}
	})
	second, other := recording(t, ok)
	failed = new(failures)
	o.OnError = failed.add
	o.Retry = proxy.Retry{Errors: true, Timeouts: true, NonIdempotent: true}
	o.Upstream = groupAt(t, upstream.Options{Balance: upstream.First()}, first, second)
	var h http.Handler = newProxy(t, via, o)
	if around != nil {
		h = around(h)
	}
	addr := wiretest.Serve(t, h)
	client := wiretest.Dial(t, addr)
	client.Send(request)
	resp, _ := client.Response("GET")
	healthy := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: o.Upstream})))
	healthy.Send(getShop)
	healthy.Status(200)
	if len(other) > 0 {
		t.Error("the target was taken out for what it had no part in")
	}
	return resp.StatusCode, failed
}

// A gateway that makes an invalid request of a valid one is itself to blame: the error has a kind of
// its own, the request is not retried on another target, and no target is taken out.
func TestOwnFaultsAreNoTargets(t *testing.T) { onPathsParallel(t, testOwnFaultsAreNoTargets) }
func testOwnFaultsAreNoTargets(t *testing.T, via path) {
	get, post := "GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
	body := func(length int64, body string) culvert.Filter {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.ContentLength, r.Body = length, io.NopCloser(strings.NewReader(body))
				next.ServeHTTP(w, r)
			})
		}
	}
	for name, test := range map[string]struct {
		rewrite func(*proxy.Outbound)
		around  culvert.Filter
		request string
		kind    culvert.ErrorKind
	}{
		"a claim with a line feed": {rewrite: func(o *proxy.Outbound) { o.Out.Header.Set("X-User", "a\nb") }, kind: culvert.Internal},
		"a name with a blank":      {rewrite: func(o *proxy.Outbound) { o.Out.Header["X User"] = []string{"a"} }, kind: culvert.Internal},
		"a method":                 {rewrite: func(o *proxy.Outbound) { o.Out.Method = "GET /" }, kind: culvert.Internal},
		"a host":                   {rewrite: func(o *proxy.Outbound) { o.Out.Host = "a b" }, kind: culvert.Internal},
		"a host with a line feed":  {rewrite: func(o *proxy.Outbound) { o.Out.Host = "a\nb" }, kind: culvert.Internal},
		"a query":                  {rewrite: func(o *proxy.Outbound) { o.Out.URL.RawQuery = "a=b c" }, kind: culvert.Internal},
		"a target":                 {rewrite: func(o *proxy.Outbound) { o.Out.URL.Opaque = "/\r\nX: y" }, kind: culvert.Internal},
		"a target without a slash": {rewrite: func(o *proxy.Outbound) { o.Out.URL.Path = "a" }, kind: culvert.Internal},
		"a scheme":                 {rewrite: func(o *proxy.Outbound) { o.Out.URL.Scheme = "ftp" }, kind: culvert.Internal},
		"no scheme":                {rewrite: func(o *proxy.Outbound) { o.Out.URL = &url.URL{Path: "/"} }},
		"a trailer":                {rewrite: func(o *proxy.Outbound) { o.Out.Header["Trailer"] = []string{"a b"} }},
		"fields of the connection": {rewrite: func(o *proxy.Outbound) {
			o.Out.Header["Connection"], o.Out.Header["Transfer-Encoding"] = []string{"x-y"}, []string{"gzip"}
		}},
		"another length":      {rewrite: func(o *proxy.Outbound) { o.Out.ContentLength = 2 }, request: post},
		"a longer body":       {around: body(2, "abc"), request: post, kind: culvert.BadRequest},
		"a shorter body":      {around: body(4, "abc"), request: post, kind: culvert.BadRequest},
		"GET *":               {request: "GET * HTTP/1.1\r\nHost: a\r\n\r\n", kind: culvert.BadRequest},
		"no path":             {request: "GET foo:bar HTTP/1.1\r\nHost: a\r\n\r\n", kind: culvert.BadRequest},
		"OPTIONS * is a path": {request: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.request == "" {
				test.request = get
			}
			status, failed := ownFault(t, via, proxy.Options{Rewrite: test.rewrite}, test.around, test.request)
			if test.kind == culvert.ErrorKind(0) {
				if status != 200 {
					t.Errorf("status %d", status)
				}
				return
			}
			if name == "a longer body" && status == 200 {
				return // what is too much was not sent, and net/http reads it later
			}
			if e := failed.only(t); e.Kind != test.kind || e.BytesSent && test.around == nil || e.TargetSide() || e.Status() != status {
				t.Errorf("status %d, failure %+v", status, e)
			}
		})
	}
}

// The same for an upgrade.
func TestOwnFaultsOfUpgrades(t *testing.T) { onPaths(t, testOwnFaultsOfUpgrades) }
func testOwnFaultsOfUpgrades(t *testing.T, via path) {
	leaktest.Check(t)
	status, failed := ownFault(t, via, proxy.Options{Rewrite: func(o *proxy.Outbound) { o.Out.Header.Set("X-User", "a\nb") }}, nil,
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if e := failed.only(t); status != 500 || e.Kind != culvert.Internal || e.BytesSent {
		t.Errorf("status %d, failure %+v", status, e)
	}
}

// A client names trailers that can't be any: they are dropped, and nothing fails.
func TestForbiddenAnnouncements(t *testing.T) { onPaths(t, testForbiddenAnnouncements) }
func testForbiddenAnnouncements(t *testing.T, via path) {
	leaktest.Check(t)
	for _, name := range []string{"X T", "Content-Type", "If-Match", "Authorization", "Cache-Control", "Range", "TE", "Host", "Set-Cookie", "X-Forwarded-For", "Upgrade", "", "X-\xff"} {
		t.Run(name, func(t *testing.T) {
			announced := make(chan string, 1)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				head := p.Header()
				p.Receive("1\r\na\r\n0\r\n")
				_, line, _ := strings.Cut(head, "Trailer: ")
				line, _, _ = strings.Cut(line, "\r\n")
				announced <- line + "|" + p.Header()
				p.Send(ok)
			})
			var failed failures
			client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})))
			client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nTrailer: " + name + "\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n")
			client.Status(200)
			if got := wiretest.Await(t, announced, "request"); got != "X-Sum|X-Sum: 1\r\n\r\n" {
				t.Errorf("the target got %q", got)
			}
			if len(failed.all) > 0 {
				t.Errorf("failures %v", failed.all)
			}
		})
	}
}

// A process without a descriptor, or a host without a local port, can reach no target, and no target is to blame for it.
func TestNothingToDialWith(t *testing.T) { onPaths(t, testNothingToDialWith) }
func testNothingToDialWith(t *testing.T, via path) {
	leaktest.Check(t)
	fails := func(call string, errno syscall.Errno) *net.Dialer {
		return &net.Dialer{Control: func(string, string, syscall.RawConn) error { return os.NewSyscallError(call, errno) }}
	}
	for name, test := range map[string]struct {
		dialer *net.Dialer
		kind   culvert.ErrorKind
	}{
		"no descriptor":      {fails("socket", syscall.EMFILE), culvert.Internal},
		"no local port":      {fails("connect", syscall.EADDRNOTAVAIL), culvert.Internal},
		"none that is bound": {fails("bind", syscall.EADDRINUSE), culvert.Internal},
	} {
		for _, request := range []string{getShop, handshakeOfA} {
			t.Run(name+", "+request[:8], func(t *testing.T) {
				var failed failures
				g := groupAt(t, upstream.Options{Dialer: test.dialer}, "127.0.0.1:1", "127.0.0.1:2")
				client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: g, OnError: failed.add})))
				for range 3 { // were a target taken out, the third would be 503
					client.Send(request)
					client.Status(500)
				}
				for _, e := range failed.all {
					if e.Kind != test.kind || e.BytesSent {
						t.Errorf("failure %v", e)
					}
				}
			})
		}
	}
}

const handshakeOfA = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// Local ports are counted for each address that is dialled: where those for one target are used up, another is requested.
func TestNoPortForOneTarget(t *testing.T) { onPaths(t, testNoPortForOneTarget) }
func testNoPortForOneTarget(t *testing.T, via path) {
	leaktest.Check(t)
	used := wiretest.Unused(t)
	free, _ := recording(t, ok)
	dialer := &net.Dialer{Control: func(_, addr string, _ syscall.RawConn) error {
		if addr == used {
			return os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)
		}
		return nil
	}}
	var failed failures
	g := groupOf(t, upstream.Options{Dialer: dialer, Balance: upstream.First()}, upstream.Target{Addr: used, FailTimeout: time.Hour}, upstream.Target{Addr: free})
	addr := wiretest.Serve(t, newProxy(t, via, proxy.Options{Upstream: g, OnError: failed.add}))
	for range 2 {
		client := wiretest.Dial(t, addr)
		client.Send(getShop)
		client.Status(200)
	}
	if n := failsOf(g); n != 0 || len(failed.all) != 0 {
		t.Errorf("%d failures of the target, %v", n, failed.all)
	}
}

// failsItself is a transport that fails by itself.
type failsItself struct{ err error }

func (r failsItself) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

// A transport of an embedder reports by a culvert.Error that the target is not to blame for a failure.
func TestTransportsOwnError(t *testing.T) { onPaths(t, testTransportsOwnError) }
func testTransportsOwnError(t *testing.T, via path) {
	leaktest.Check(t)
	for kind, want := range map[culvert.ErrorKind]int{culvert.Internal: 500, culvert.Forbidden: 403} {
		cause := fmt.Errorf("signing: %w", &culvert.Error{Kind: kind, Err: errors.New("no key")})
		status, failed := ownFault(t, via, proxy.Options{Transport: failsItself{cause}}, nil, getShop)
		if e := failed.only(t); status != want || e.Kind != kind || e.BytesSent || !errors.Is(e, cause) {
			t.Errorf("status %d, failure %+v", status, e)
		}
	}
}

// Framing under a name in another case is not sent beside the proxy's own, on either path.
func TestFramingInAnotherCase(t *testing.T) { onPaths(t, testFramingInAnotherCase) }
func testFramingInAnotherCase(t *testing.T, via path) {
	leaktest.Check(t)
	target, requests := readingTarget(t)
	raw := map[string]string{"content-length": "77", "transfer-encoding": "chunked", "TRANSFER-ENCODING": "gzip", "host": "b", "connection": "close", "trailer": "X-T"}
	p := newProxy(t, via, proxy.Options{
		Upstream: groupAt(t, upstream.Options{}, target),
		Rewrite: func(o *proxy.Outbound) {
			for name, value := range raw {
				o.Out.Header[name] = []string{value}
			}
			o.Out.Header["x-raw"] = []string{"kept"}
		},
		ModifyResponse: func(a *proxy.Response) { a.Header["content-length"] = []string{"77"} },
	})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
	if got := client.Header(); strings.Contains(got, "77") {
		t.Errorf("the client got %q", got)
	}
	got := wiretest.Await(t, requests, "request")
	if got.err != nil || got.body != "abc" || got.ContentLength != 3 || got.Host != "a" || got.TransferEncoding != nil || got.Close || got.Trailer != nil {
		t.Errorf("the target got %+v, body %q, error %v", got.Request, got.body, got.err)
	}
	if got.Header.Get("X-Raw") != "kept" {
		t.Error("x-raw was dropped")
	}
}
