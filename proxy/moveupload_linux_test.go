package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// moves is a filter that counts the bytes of request bodies that the kernel moves.
type moves struct{ n atomic.Int64 }

func (m *moves) filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if source, ok := r.Body.(clientbody.Source); ok {
			r.Body = movedBody{r.Body, source, m}
		}
		next.ServeHTTP(w, r)
	})
}

type movedBody struct {
	io.ReadCloser
	clientbody.Source
	moves *moves
}

func (b movedBody) Move(to clientbody.Taker, most int64, begin func() bool) (int64, bool, error) {
	n, ended, err := b.Source.Move(to, most, begin)
	b.moves.n.Add(n)
	return n, ended, err
}

// moving reports whether the kernel moves uploads: those that package http1 sends for package server.
func moving(via path) bool { return via == ownExchange && wiretest.OwnServer() }

// uploaded is a target that sends each request's body, and the sizes in which it may be sent on; it responds with ok.
func uploaded(t *testing.T, secure bool) (addr string, bodies <-chan string) {
	c := make(chan string, 9)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the target's body: %v after %d bytes", err, len(body))
		}
		c <- string(body)
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), c
}

// passOn has a body of its own around the request's.
func passOn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = struct{ io.ReadCloser }{r.Body}
		next.ServeHTTP(w, r)
	})
}

// within returns filters.Timeout.
func within(t *testing.T, d time.Duration) culvert.Filter {
	timeout, err := filters.Timeout(d)
	if err != nil {
		t.Fatal(err)
	}
	return timeout
}

// Uploads reach their target byte for byte. Those that are long, of a known length, in the clear on both sides and kept for no
// other attempt are moved by the kernel.
func TestLargeUploads(t *testing.T) { onPathsParallel(t, testLargeUploads) }
func testLargeUploads(t *testing.T, via path) {
	const length = 1_000_000
	body := string(wiretest.Pattern(length))
	chunks := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(s), s) }
	whole := func(header, body string) func(*wiretest.Peer) {
		return func(p *wiretest.Peer) { p.Send(header + body) }
	}
	header := func(n int) string { return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", n) }
	for name, test := range map[string]struct {
		o       proxy.Options
		u       upstream.Options
		secure  bool // the client speaks TLS
		around  culvert.Filter
		send    func(*wiretest.Peer)
		want    string
		isMoved bool
	}{
		"at once": {send: whole(header(length), body), want: body, isMoved: true},
		"slowly": {send: func(p *wiretest.Peer) {
			p.Send(header(length))
			for at := 0; at < length; at += 100_001 {
				p.Send(body[at:min(at+100_001, length)])
				time.Sleep(time.Millisecond)
			}
		}, want: body, isMoved: true},
		"for longer than a write may take": {u: upstream.Options{WriteTimeout: 50 * soon}, send: func(p *wiretest.Peer) {
			p.Send(header(length) + body[:length/2])
			time.Sleep(65 * soon)
			p.Send(body[length/2:])
		}, want: body, isMoved: true},
		"behind the beginning": {send: func(p *wiretest.Peer) {
			p.Send(header(length) + body[:3000])
			time.Sleep(time.Millisecond)
			p.Send(body[3000:])
		}, want: body, isMoved: true},
		"the last byte later": {send: func(p *wiretest.Peer) {
			p.Send(header(length) + body[:length-1])
			time.Sleep(10 * time.Millisecond)
			p.Send(body[length-1:])
		}, want: body, isMoved: true},
		"urgent data within": {send: func(p *wiretest.Peer) {
			p.Send(header(length) + body[:length/2])
			if err := sendUrgent(p.Conn.(syscall.Conn)); err != nil {
				t.Error(err)
			}
			p.Send(body[length/2:])
		}, want: body, isMoved: true},
		"short":  {send: whole(header(60_000), body[:60_000]), want: body[:60_000]},
		"chunks": {send: whole("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", chunks(body)), want: body},
		"expected": {send: func(p *wiretest.Peer) {
			p.Send(strings.Replace(header(length), "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1))
			if got := p.Header(); !strings.HasPrefix(got, "HTTP/1.1 100 ") {
				t.Errorf("the client got %q", got)
			}
			p.Send(body)
		}, want: body, isMoved: true},
		"buffered": {o: proxy.Options{RequestBuffer: &proxy.Buffer{Memory: 2 * length}}, send: whole(header(length), body), want: body},
		"kept": {o: proxy.Options{Retry: proxy.Retry{Errors: true, NonIdempotent: true, KeepBody: 2 * length}},
			send: whole(header(length), body), want: body},
		"kept in part": {o: proxy.Options{Retry: proxy.Retry{Errors: true, NonIdempotent: true, KeepBody: length / 2}},
			send: whole(header(length), body), want: body, isMoved: true},
		"with a time":  {around: within(t, time.Minute), send: whole(header(length), body), want: body, isMoved: true},
		"filtered":     {around: passOn, send: whole(header(length), body), want: body},
		"a TLS client": {secure: true, send: whole(header(length), body), want: body},
		"a TLS target": {u: upstream.Options{Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}}, send: whole(header(length), body), want: body},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, bodies := uploaded(t, test.u.Scheme == "https")
			var failed failures
			test.o.OnError = failed.add
			test.o.Upstream = groupAt(t, test.u, target)
			counted := new(moves)
			around := []culvert.Filter{counted.filter}
			if test.around != nil {
				around = append(around, test.around)
			}
			h := filters.NewChain(around...).Then(newProxy(t, via, test.o))
			var client *wiretest.Peer
			if test.secure {
				s := wiretest.NewTLSServer(h)
				t.Cleanup(s.Close)
				conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				client = wiretest.NewPeer(t, conn)
			} else {
				client = wiretest.Dial(t, wiretest.Serve(t, h))
			}
			for range 2 { // over the same connections
				before := counted.n.Load()
				test.send(client)
				wiretest.SameBytes(t, "body", []byte(wiretest.Await(t, bodies, "body")), []byte(test.want))
				client.Status(200)
				if n, want := counted.n.Load()-before, test.isMoved && moving(via); (n > 0) != want {
					t.Errorf("%d bytes were moved, want some: %v", n, want)
				}
			}
			if len(failed.all) > 0 {
				t.Errorf("failures %v", failed.all)
			}
		})
	}
}

// A client that ends within an upload, or stops, ends the exchange and the target's connection with it, and no target is
// blamed.
func TestLargeUploadsBreakOff(t *testing.T) { onPathsParallel(t, testLargeUploadsBreakOff) }
func testLargeUploadsBreakOff(t *testing.T, via path) {
	const sent = 300_000
	for name, test := range map[string]struct {
		end    func(*wiretest.Peer)
		o      proxy.Options
		kind   culvert.ErrorKind
		status string
	}{
		"closed":      {func(p *wiretest.Peer) { p.Close() }, proxy.Options{}, culvert.ClientGone, ""},
		"reset":       {(*wiretest.Peer).Reset, proxy.Options{}, culvert.ClientGone, ""},
		"half closed": {(*wiretest.Peer).End, proxy.Options{}, culvert.ClientGone, ""},
		"stopped":     {func(*wiretest.Peer) {}, proxy.Options{ReadTimeout: 3 * soon}, culvert.BodyTooSlow, "HTTP/1.1 408 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			received := make(chan struct{})
			rest := make(chan string, 1)
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				_, _ = io.CopyN(io.Discard, p.R, sent)
				close(received)
				rest <- p.Ended()
			})
			var failed failures
			test.o.OnError = failed.add
			test.o.Upstream = groupOf(t, upstream.Options{}, upstream.Target{Addr: target, MaxFails: 1, FailTimeout: time.Hour})
			counted := new(moves)
			client := wiretest.Dial(t, wiretest.Serve(t, filters.NewChain(counted.filter).Then(newProxy(t, via, test.o))))
			client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + string(wiretest.Pattern(sent)))
			wiretest.Await(t, received, "the upload's beginning")
			test.end(client)
			if got := wiretest.Await(t, rest, "the end of the target's connection"); got != "" {
				t.Errorf("the target got %d bytes more", len(got))
			}
			if test.status != "" {
				if got := client.Header(); !strings.HasPrefix(got, test.status) {
					t.Errorf("response %q", got)
				}
			}
			failed.await(t)
			if e := failed.only(t); e.Kind != test.kind || !e.BytesSent {
				t.Errorf("failure %v", e)
			}
			if n := failsOf(test.o.Upstream.(*upstream.Group)); n != 0 {
				t.Errorf("%d failures of the target", n)
			}
			if n := counted.n.Load(); (n > 0) != moving(via) {
				t.Errorf("%d bytes were moved", n)
			}
		})
	}
}

// A target that ends within an upload, or accepts no more of it, is to blame, and its early response is relayed.
func TestLargeUploadsToAFailingTarget(t *testing.T) {
	onPathsParallel(t, testLargeUploadsToAFailingTarget)
}
func testLargeUploadsToAFailingTarget(t *testing.T, via path) {
	const early = "HTTP/1.1 413 Early\r\nContent-Length: 2\r\n\r\nno"
	for name, test := range map[string]struct {
		target func(*wiretest.Peer)
		o      upstream.Options
		status int
		kind   culvert.ErrorKind // with another status than 413
	}{
		"closed":           {func(p *wiretest.Peer) { p.Close() }, upstream.Options{}, 502, culvert.HeaderInvalid},
		"reset":            {(*wiretest.Peer).Reset, upstream.Options{}, 502, culvert.HeaderInvalid},
		"stopped":          {nil, upstream.Options{WriteTimeout: 4 * soon}, 504, culvert.Timeout},
		"early":            {func(p *wiretest.Peer) { p.Send(early); p.Ended() }, upstream.Options{}, 413, 0},
		"early and closed": {func(p *wiretest.Peer) { p.Send(early); p.End(); p.Ended() }, upstream.Options{}, 413, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			responded := make(chan struct{})
			target := wiretest.Target(t, func(p *wiretest.Peer) {
				p.Header()
				_, _ = io.CopyN(io.Discard, p.R, 200_000)
				if test.target == nil {
					<-responded
					return
				}
				test.target(p)
			})
			var failed failures
			group := groupOf(t, test.o, upstream.Target{Addr: target, MaxFails: 5, FailTimeout: time.Hour})
			counted := new(moves)
			h := filters.NewChain(counted.filter).Then(newProxy(t, via, proxy.Options{Upstream: group, OnError: failed.add}))
			client := wiretest.Dial(t, wiretest.Serve(t, h))
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				// The content arrives with the header, so that some waits in the socket when the proxy looks.
				header := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 64000000\r\n\r\n"
				_, _ = client.Conn.Write(append([]byte(header), make([]byte, 128<<10)...))
				_, _ = io.CopyN(client.Conn, zeros{}, 32_000_000)
			}()
			resp, _ := client.Response("POST")
			close(responded)
			client.Close()
			<-sent
			if resp.StatusCode != test.status {
				t.Errorf("response %s", resp.Status)
			}
			if test.kind != 0 {
				if e := failed.only(t); e.Kind != test.kind {
					t.Errorf("failure %v", e)
				}
				if n := failsOf(group); n != 1 {
					t.Errorf("%d failures of the target", n)
				}
			}
			if n := counted.n.Load(); (n > 0) != moving(via) {
				t.Errorf("%d bytes were moved", n)
			}
		})
	}
}
