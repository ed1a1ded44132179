package wsupgrade_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

func TestTargetFails(t *testing.T) {
	leaktest.Check(t)
	endless := func(prefix, piece string) func(*wiretest.Peer) {
		return func(p *wiretest.Peer) {
			p.Header()
			_, err := io.WriteString(p, prefix)
			for err == nil {
				_, err = io.WriteString(p, piece)
			}
		}
	}
	impatient := wsupgrade.Options{HandshakeTimeout: 50 * time.Millisecond}
	slowHeader := wsupgrade.Options{HeaderTimeout: 50 * time.Millisecond, HandshakeTimeout: time.Hour}
	small := wsupgrade.Options{MaxHeaderBytes: 1000}
	for _, test := range []struct {
		name    string
		options wsupgrade.Options
		script  func(*wiretest.Peer) // nil: the port is closed
		status  int
		wrote   bool
	}{
		{"refuses", wsupgrade.Options{}, nil, 502, false},
		{"closes", wsupgrade.Options{}, func(p *wiretest.Peer) { p.Header() }, 502, true},
		{"closes within the header", wsupgrade.Options{}, func(p *wiretest.Peer) { p.Header(); p.Send(switching[:len(switching)-2]) }, 502, true},
		{"sends garbage", wsupgrade.Options{}, func(p *wiretest.Peer) { p.Header(); p.Send("\x16\x03\x01 what?\r\n\r\n"); p.Ended() }, 502, true},
		{"sends status 099", wsupgrade.Options{}, func(p *wiretest.Peer) { p.Header(); p.Send("HTTP/1.1 099 Low\r\n\r\n"); p.Ended() }, 502, true},
		{"sends a huge header", wsupgrade.Options{}, endless("HTTP/1.1 101 Switching Protocols\r\n", "X-Fill: "+strings.Repeat("x", 1000)+"\r\n"), 502, true},
		{"sends one long line", small, endless("HTTP/1.1 101 Switching Protocols\r\nX-Fill: ", "x"), 502, true},
		{"sends interim responses for ever", small, endless("", "HTTP/1.1 103 Early Hints\r\n\r\n"), 502, true},
		{"never responds", impatient, func(p *wiretest.Peer) { p.Header(); p.Ended() }, 504, true},
		{"has its own time for the header", slowHeader, func(p *wiretest.Peer) { p.Header(); p.Ended() }, 504, true},
		{"stops within the header", impatient, func(p *wiretest.Peer) { p.Header(); p.Send("HTTP/1.1 101 Switching Protocols\r\n"); p.Ended() }, 504, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			target := wiretest.Unused(t)
			if test.script != nil {
				target = wiretest.Target(t, test.script)
			}
			addr, outcomes := watched(t, test.options, target)
			p := wiretest.Dial(t, addr)
			p.Send(handshake)
			p.Status(test.status)
			if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || o.err.BytesSent != test.wrote || o.err.HeaderSent || o.err.ClientSide() || o.err.Target != target {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

// The timeout covers dialling and TLS, and the connection is closed.
func TestTargetStallsBeforeTheHead(t *testing.T) {
	leaktest.Check(t)
	stalls := wiretest.Target(t, func(p *wiretest.Peer) { p.Ended() })
	for _, test := range []struct {
		name, scheme string
		dial         func(context.Context, string, string) (net.Conn, error)
	}{
		{"dial", "http", func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }},
		{"TLS", "https", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := forwarder(t, wsupgrade.Options{HandshakeTimeout: 50 * time.Millisecond, Dial: test.dial})
			outcomes := make(chan *culvert.Error, 1)
			p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				out := outboundTo(r, stalls)
				out.URL.Scheme = test.scheme
				_, err := f.Forward(w, r, out)
				outcomes <- asError(err)
				wsupgrade.Refuse(w, asError(err))
			})))
			p.Send(handshake)
			p.Status(504)
			if e := wiretest.Await(t, outcomes, "outcome"); e.BytesSent {
				t.Errorf("outcome %+v", e)
			}
		})
	}
}

// A client that leaves during the handshake ends it, and it is not the target's
// fault.
func TestClientLeavesDuringTheHandshake(t *testing.T) {
	leaktest.Check(t)
	requested := make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		close(requested)
		p.Ended()
	})
	addr, outcomes := watched(t, wsupgrade.Options{}, target)
	p := wiretest.Dial(t, addr)
	p.Send(handshake)
	wiretest.Await(t, requested, "handshake at the target")
	p.Close()
	if o := wiretest.Await(t, outcomes, "outcome"); o.err == nil || o.err.Status() != 499 || o.err.HeaderSent {
		t.Errorf("outcome %+v", o)
	}
}

// unhijackable does not implement http.Hijacker, as careless wrappers do not.
type unhijackable struct{ http.ResponseWriter }

// A valid 101 that can't be passed on is refused, without the 101's fields, and not blamed on the
// target.
func TestConnectionCannotBeTakenOver(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Replying(t, with(switching, "X-A: b"))
	f := forwarder(t, wsupgrade.Options{})
	p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Filter", "c")
		_, err := f.Forward(unhijackable{w}, r, outboundTo(r, target))
		e := asError(err)
		if e == nil || !errors.Is(err, http.ErrNotSupported) || !e.ClientSide() || !e.BytesSent || e.HeaderSent {
			t.Errorf("Forward: %+v", e)
		}
		wsupgrade.Refuse(w, e)
	})))
	p.Send(handshake)
	resp, _ := p.Response("GET")
	if resp.StatusCode != 400 || resp.Header.Get("X-Filter") != "c" || resp.Header["Upgrade"] != nil || resp.Header["Sec-Websocket-Accept"] != nil || resp.Header["X-A"] != nil {
		t.Errorf("response %s %v", resp.Status, resp.Header)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]wsupgrade.Options{
		"negative header": {MaxHeaderBytes: -1},
		"h2c":             {Protocols: []string{"websocket", "h2c"}},
		"any and h2c":     {Protocols: []string{wsupgrade.AnyProtocol, "h2c"}},
		"HTTP/2.0":        {Protocols: []string{"HTTP/2.0"}},
		"TLS":             {Protocols: []string{"TLS/1.0"}},
		"no token":        {Protocols: []string{"web socket"}},
		"empty":           {Protocols: []string{""}},
	} {
		if f, err := wsupgrade.New(o); err == nil || f != nil {
			t.Errorf("%s: New gave %v, %v", name, f, err)
		}
	}
}

// pushes is a wrapper that has Push for every protocol, as that of many a middleware has.
type pushes struct{ http.ResponseWriter }

func (pushes) Push(string, *http.PushOptions) error { return http.ErrNotSupported }

func (w pushes) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A 426 over HTTP/1.1 names the protocol to request (RFC 9110 section 15.5.22), with any wrapper of
// the server's writer.
func TestRefusalBehindAWriterThatPushes(t *testing.T) {
	leaktest.Check(t)
	h := forwarder(t, wsupgrade.Options{}).Handler(&url.URL{Scheme: "http", Host: "target.test"})
	p := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(pushes{w}, r) })))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, _ := p.Response("GET"); resp.StatusCode != 426 || resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Connection") != "Upgrade" {
		t.Errorf("response %s %v", resp.Status, resp.Header)
	}
}
