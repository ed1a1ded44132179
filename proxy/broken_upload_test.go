package proxy_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client's body that breaks off, or comes to a halt, while the response is relayed is the client's failure: the target
// would continue.
func TestBodyBreaksBesideTheResponse(t *testing.T) { onPaths(t, testBodyBreaksBesideTheResponse) }
func testBodyBreaksBesideTheResponse(t *testing.T, via path) {
	leaktest.Check(t)
	const header = "POST / HTTP/1.1\r\nHost: a\r\n"
	chunked := func(rest func(*wiretest.Peer)) func(*testing.T, http.Handler, <-chan struct{}) {
		return func(t *testing.T, h http.Handler, begun <-chan struct{}) {
			client := wiretest.Dial(t, wiretest.Serve(t, h))
			client.Send(header + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n")
			wiretest.Await(t, begun, "response")
			client.Header()
			rest(client)
		}
	}
	type test struct {
		name   string
		client func(t *testing.T, h http.Handler, begun <-chan struct{})
		kind   culvert.ErrorKind
	}
	atOnce(t, []test{
		{"no chunk", chunked(func(p *wiretest.Peer) { p.Send("no chunk\r\n"); p.Ended() }), culvert.BadRequest},
		{"half close", chunked(func(p *wiretest.Peer) { p.End(); p.Ended() }), culvert.ClientGone},
		{"halt", chunked(func(p *wiretest.Peer) { p.Ended() }), culvert.BodyTooSlow},
		{"too short, HTTP/2", shortOverHTTP2, culvert.BadRequest},
	}, func(c test) string { return c.name }, func(t *testing.T, test test) {
		begun := make(chan struct{})
		target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			_ = rc.EnableFullDuplex()
			_, _ = io.ReadFull(r.Body, make([]byte, 4))
			_, _ = io.WriteString(w, "begun")
			_ = rc.Flush()
			close(begun)
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		var failed failures
		o := proxy.Options{ReadTimeout: 3 * soon, OnError: failed.add,
			Upstream: groupOf(t, upstream.Options{}, upstream.Target{Addr: target, MaxFails: 1, FailTimeout: time.Hour})}
		test.client(t, newProxy(t, via, o), begun)
		failed.await(t)
		if e := failed.only(t); e.Kind != test.kind || !e.HeaderSent || !e.BytesSent || e.Target != "" {
			t.Errorf("failure %v, %#v", e, e)
		}
		if n := failsOf(o.Upstream.(*upstream.Group)); n != 0 {
			t.Errorf("%d failures of the target", n)
		}
	})
}

// shortOverHTTP2 sends fewer bytes than its Content-Length says, and ends the stream when the response has begun.
func shortOverHTTP2(t *testing.T, h http.Handler, begun <-chan struct{}) {
	s := h2Server(t, h)
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	block := headerBlock(":method: POST\n:scheme: https\n:authority: a\n:path: /\ncontent-length: 99999\n")
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true})
	_ = framer.WriteData(1, false, []byte("body"))
	wiretest.Await(t, begun, "response")
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Error(err)
			return
		}
		switch f.(type) {
		case *http2.HeadersFrame: // the response's
			_ = framer.WriteData(1, true, []byte("more"))
		case *http2.RSTStreamFrame:
			return
		}
	}
}
