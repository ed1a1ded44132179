package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The response that a client gets, and the error that OnError is called with, for every way
// in which a target fails before the header was sent.
func TestBadTargets(t *testing.T) { onPaths(t, testBadTargets) }
func testBadTargets(t *testing.T, via path) {
	leaktest.Check(t)
	reset := func(p *wiretest.Peer) { p.Header(); p.Reset() }
	tests := []struct {
		name   string
		target func(t *testing.T) string
		kind   culvert.ErrorKind
		status int
		wrote  bool
	}{
		{"refuses", func(t *testing.T) string { return wiretest.Unused(t) }, culvert.DialFailed, 502, false},
		{"resets", func(t *testing.T) string { return wiretest.Target(t, reset) }, culvert.HeaderInvalid, 502, true},
		{"closes", replying(""), culvert.HeaderInvalid, 502, true},
		{"stalls", func(t *testing.T) string { return wiretest.Replying(t, "") }, culvert.Timeout, 504, true},
		{"stalls in the head", func(t *testing.T) string { return wiretest.Replying(t, "HTTP/1.1 200 OK\r\nX: ") }, culvert.Timeout, 504, true},
		{"garbage", replying("\x16\x03\x01\x00\x05hello\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"status 099", replying("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"status 000", replying("HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"status of four digits", replying("HTTP/1.1 1200 Odd\r\nContent-Length: 0\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"an unasked 101", replying("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"huge head", replying("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"half a head", replying("HTTP/1.1 200 OK\r\nContent-Le"), culvert.HeaderInvalid, 502, true},
		{"two lengths", replying("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok"), culvert.HeaderInvalid, 502, true},
		{"a negative length", replying("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok"), culvert.HeaderInvalid, 502, true},
		{"an unknown coding", replying("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nok"), culvert.HeaderInvalid, 502, true},
		{"a first field that is folded", replying("HTTP/1.1 200 OK\r\n X: v\r\nContent-Length: 0\r\n\r\n"), culvert.HeaderInvalid, 502, true},
		{"a field without a name", replying("HTTP/1.1 200 OK\r\n: v\r\n\r\n"), culvert.HeaderInvalid, 502, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var failed failures
			target := test.target(t)
			var o upstream.Options
			if test.kind == culvert.Timeout {
				o.HeaderTimeout = 50 * time.Millisecond
			}
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, o, target), OnError: failed.add})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			resp, body := client.Response("GET")
			if want := http.StatusText(test.status) + "\n"; resp.StatusCode != test.status || body != want {
				t.Errorf("response %s %q, want %d %q", resp.Status, body, test.status, want)
			}
			e := failed.only(t)
			if e.Kind != test.kind || e.Target != target || e.BytesSent != test.wrote || e.HeaderSent || e.ClientSide() {
				t.Errorf("failure %#v, want %v of %s, Wrote %v", e, test.kind, target, test.wrote)
			}
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n") // the connection is none the worse
			client.Status(test.status)
		})
	}
}

func replying(reply string) func(*testing.T) string {
	return func(t *testing.T) string {
		return wiretest.Target(t, func(p *wiretest.Peer) {
			p.Header()
			_, _ = io.WriteString(p, reply) // the gateway need not read all of it
		})
	}
}

// After the header was sent a failure aborts the response: half a body never looks complete
// (traefik#13568), and OnError is called with the cause (golang/go#28239).
func TestHalfABody(t *testing.T) { onPaths(t, testHalfABody) }
func testHalfABody(t *testing.T, via path) {
	leaktest.Check(t)
	for name, reply := range map[string]string{
		"with a length":          "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"chunked":                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"a broken chunk":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
		"a folded first trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n X: v\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			target := replying(reply)(t)
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), OnError: failed.add})
			client := wiretest.Dial(t, wiretest.Serve(t, p))
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			client.Header()
			got := client.Ended()
			if !strings.Contains(got, "half") || strings.HasSuffix(got, "0\r\n\r\n") {
				t.Errorf("the client got %q", got)
			}
			if e := failed.only(t); e.Kind != culvert.BodyBroken || e.Target != target || !e.HeaderSent {
				t.Errorf("failure %#v", e)
			}
		})
	}
}

// Only a target that could not be dialled is followed by another: the second
// must never see a request that the first may have acted on.
func TestNextTarget(t *testing.T) { onPaths(t, testNextTarget) }
func testNextTarget(t *testing.T, via path) {
	leaktest.Check(t)
	body := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	t.Run("after a refused connection", func(t *testing.T) {
		target, requests := readingTarget(t)
		client := wiretest.Dial(t, gateway(t, via, wiretest.Unused(t), target))
		client.Send(body)
		client.Status(200)
		if got := wiretest.Await(t, requests, "request"); got.body != "hello" {
			t.Errorf("the target got %q", got.body)
		}
	})
	t.Run("not after a lost one", func(t *testing.T) {
		second, heads := recording(t, ok)
		client := wiretest.Dial(t, gateway(t, via, wiretest.Target(t, func(p *wiretest.Peer) { p.Header() }), second))
		client.Send(body)
		client.Status(502)
		select {
		case head := <-heads:
			t.Errorf("the second target got %q", head)
		default:
		}
	})
	t.Run("until there is none", func(t *testing.T) {
		client := wiretest.Dial(t, gateway(t, via, wiretest.Unused(t), wiretest.Unused(t)))
		client.Send(body)
		client.Status(502)
		client.Close()
	})
}

func TestErrorHandler(t *testing.T) { onPaths(t, testErrorHandler) }
func testErrorHandler(t *testing.T, via path) {
	leaktest.Check(t)
	var calls []string
	p := newProxy(t, via, proxy.Options{
		Upstream: groupOf(t, upstream.Options{Name: "app"}, upstream.Target{Addr: "127.0.0.1:1", Down: true}),
		OnError:  func(_ *http.Request, e *culvert.Error) { calls = append(calls, "OnError "+e.Error()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, e *culvert.Error) {
			calls = append(calls, "ErrorHandler "+e.Error())
			w.WriteHeader(599)
		},
	})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	client.Status(599)
	if want := "OnError no target available: app: no healthy target is left, ErrorHandler no target available: app: no healthy target is left"; strings.Join(calls, ", ") != want {
		t.Errorf("the hooks were called with %q, want %q", calls, want)
	}
}
