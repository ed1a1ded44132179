package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

const getRoot = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// waiting is a server whose handler waits for proceed, if the path is not the root.
func waiting(s *Server) (l *pipeListener, proceed chan bool) {
	l, proceed = newPipes(), make(chan bool)
	s.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			<-proceed
		}
	})
	return l, proceed
}

// get has a peer send a request, and awaits its response.
func get(p *wiretest.Peer) {
	p.Send(getRoot)
	p.Status(http.StatusOK)
}

// isOpen reports whether the server has not closed the connection. It is called in a bubble, if nothing is to be read.
func isOpen(p *wiretest.Peer) bool {
	_ = p.SetReadDeadline(time.Now().Add(time.Nanosecond))
	_, err := p.Read(make([]byte, 1))
	_ = p.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// expectStats compares the counts, but for those that are 0 in both.
func expectStats(t *testing.T, s *Server, want ConnStats) {
	t.Helper()
	synctest.Wait()
	if got := s.ConnStats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// Connections above MaxConns wait in the order of their arrival, for a while, and as many as there is room for.
func TestAcceptQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 2, AcceptQueue: 3}
		l, proceed := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		first, second := l.dial(t), l.dial(t)
		for _, p := range []*wiretest.Peer{first, second} {
			p.Send("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			go io.Copy(io.Discard, p)
		}
		third, fourth, fifth, sixth := l.dial(t), l.dial(t), l.dial(t), l.dial(t)
		if rest := sixth.Ended(); rest != "" {
			t.Errorf("rest %q", rest)
		}
		expectStats(t, s, ConnStats{Open: 2, Waiting: 3, Overload: 1})
		go third.Send(getRoot)
		time.Sleep(510 * time.Millisecond)
		begun := time.Now()
		proceed <- true
		third.Status(http.StatusOK)
		if took := time.Since(begun); took > 0 {
			t.Errorf("a free place was not given for %v", took)
		}
		expectStats(t, s, ConnStats{Open: 2, Waiting: 2, Overload: 1})
		if !isOpen(fourth) || !isOpen(fifth) {
			t.Error("a connection that waits was closed")
		}
		time.Sleep(260 * time.Millisecond) // third has been idle for long enough
		expectStats(t, s, ConnStats{Open: 2, Waiting: 1, Overload: 1, ClosedForRoom: 1})
		get(fourth)
		if isOpen(third) {
			t.Error("the idle connection was not closed")
		}
		time.Sleep(240 * time.Millisecond) // a second behind its arrival
		expectStats(t, s, ConnStats{Open: 2, Overload: 2, ClosedForRoom: 1})
		if isOpen(fifth) || !isOpen(fourth) {
			t.Error("the wait has no bound, or another connection was closed")
		}
		proceed <- true
		synctest.Wait()
		expectStats(t, s, ConnStats{Open: 1, Overload: 2, ClosedForRoom: 1})
		get(l.dial(t))
	})
}

// Without a queue a connection is refused at once, unless one has been idle.
func TestNoAcceptQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 1, AcceptQueue: -1}
		l, _ := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		kept := l.dial(t)
		get(kept)
		time.Sleep(200 * time.Millisecond)
		if isOpen(l.dial(t)) || !isOpen(kept) {
			t.Error("the wrong connection was closed")
		}
		time.Sleep(100 * time.Millisecond)
		get(l.dial(t))
		if isOpen(kept) {
			t.Error("the idle connection was not closed")
		}
		expectStats(t, s, ConnStats{Open: 1, Overload: 1, ClosedForRoom: 1})
	})
}

// Newcomers take the places of those that have waited for a request for longest, whether that is their first one or not. A
// connection that has been idle for a short time only is kept.
func TestOldestIdleIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 5}
		l, proceed := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		var all []*wiretest.Peer
		for range 5 {
			all = append(all, l.dial(t))
			time.Sleep(10 * time.Millisecond)
		}
		all[2].Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		get(all[0])
		time.Sleep(10 * time.Millisecond)
		get(all[4])
		time.Sleep(300 * time.Millisecond)
		get(all[3]) // busy
		for i, want := range []string{"01234", "0234", "234", "23"} {
			if i > 0 {
				get(l.dial(t))
			}
			var open string
			for i, p := range all {
				if isOpen(p) {
					open += fmt.Sprint(i)
				}
			}
			if open != want {
				t.Errorf("behind %d newcomers %s are open, want %s", i, open, want)
			}
		}
		close(proceed)
		all[2].Status(http.StatusOK)
	})
}

// A connection that has been used since another one was closed for room is not the oldest any more.
func TestUsedConnectionIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 3}
		l, _ := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		first, second, third := l.dial(t), l.dial(t), l.dial(t)
		for _, p := range []*wiretest.Peer{first, second, third} {
			get(p)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		get(l.dial(t))
		get(second)
		get(l.dial(t))
		if isOpen(first) || !isOpen(second) || isOpen(third) {
			t.Errorf("open: %v, %v, %v", isOpen(first), isOpen(second), isOpen(third))
		}
	})
}

// addressed is a connection with another address.
type addressed struct {
	net.Conn
	addr net.Addr
}

func (c addressed) RemoteAddr() net.Addr { return c.addr }

// proxied is the address of a connection that came through a load balancer.
type proxied string

func (proxied) Network() string  { return "proxied" }
func (a proxied) String() string { return string(a) }

// dialFrom is dial with a client's address, in a bubble.
func (l *pipeListener) dialFrom(t *testing.T, addr net.Addr) *wiretest.Peer {
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	l.conns <- addressed{server, addr}
	p := wiretest.NewPeer(t, client)
	_ = client.SetDeadline(time.Time{})
	synctest.Wait()
	return p
}

// A connection that is closed for room counts for its address once.
func TestMaxConnsPerAddrBehindRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 1, MaxConnsPerAddr: 1, AcceptTimeout: time.Hour}
		l, _ := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		one, other := proxied("192.0.2.1:1"), proxied("192.0.2.2:1")
		first := l.dialFrom(t, one)
		time.Sleep(300 * time.Millisecond)
		second := l.dialFrom(t, other)
		if isOpen(first) || !isOpen(second) {
			t.Error("the idle connection was not closed")
		}
		if !isOpen(l.dialFrom(t, one)) || isOpen(l.dialFrom(t, one)) {
			t.Error("its address has no room, or room for two")
		}
	})
}

// MaxConnsPerAddr holds for an IPv4 address, and for a /64 network of IPv6, unless it is trusted.
func TestMaxConnsPerAddr(t *testing.T) {
	tcp := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	all := []struct {
		addr    net.Addr
		refused bool
	}{
		{tcp("192.0.2.1:1"), false}, {tcp("192.0.2.1:2"), false}, {tcp("192.0.2.1:3"), true}, {tcp("192.0.2.2:1"), false},
		{tcp("[::ffff:192.0.2.1]:4"), true}, {proxied("192.0.2.1:5"), true}, {proxied("192.0.2.3:5"), false},
		{tcp("[2001:db8::1]:1"), false}, {tcp("[2001:db8::2:0:0:1]:1"), false}, {tcp("[2001:db8::3]:1"), true},
		{tcp("[2001:db8:0:1::1]:1"), false}, {tcp("[2001:db8:0:1::1%eth0]:1"), false}, {tcp("[2001:db8:0:1::2%eth1]:1"), true},
		{tcp("10.0.0.1:1"), false}, {tcp("10.0.0.1:2"), false}, {tcp("10.0.0.1:3"), false},
		{&net.UnixAddr{Net: "unix"}, false}, {&net.UnixAddr{Net: "unix"}, false}, {&net.UnixAddr{Net: "unix"}, false}, {nil, false},
	}
	synctest.Test(t, func(t *testing.T) {
		trusted := netip.MustParsePrefix("10.0.0.0/8")
		s := &Server{MaxConnsPerAddr: 2, TrustedAddr: trusted.Contains}
		l, _ := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		var first *wiretest.Peer
		dial := func(addr net.Addr) *wiretest.Peer { return l.dialFrom(t, addr) }
		for _, c := range all {
			p := dial(c.addr)
			if first == nil {
				first = p
			}
			if isOpen(p) == c.refused {
				t.Errorf("%v: refused: %v", c.addr, !c.refused)
			}
		}
		first.Close()
		synctest.Wait()
		if again := dial(all[0].addr); !isOpen(again) || isOpen(dial(all[0].addr)) {
			t.Error("a connection that has ended counts, or one that is there does not")
		}
		expectStats(t, s, ConnStats{Open: 15, OverloadAddr: 6})
	})
}

// What TrustedAddr does wrong costs its connection's trust alone.
func TestTrustedAddrPanics(t *testing.T) {
	s := handler(func(http.ResponseWriter, *http.Request) {})
	s.MaxConnsPerAddr, s.TrustedAddr = 1, func(netip.Addr) bool { panic("of the hook") }
	addr := start(t, s)
	get(wiretest.Dial(t, addr))
	if rest := wiretest.Dial(t, addr).Ended(); rest != "" {
		t.Errorf("rest %q", rest)
	}
}

// With OverloadResponse a client whose request has arrived reads the 503, over a socket and over a pipe; over TLS the
// connection is closed.
func TestOverloadResponse(t *testing.T) {
	proceed := make(chan bool)
	defer close(proceed)
	began := make(chan bool, 1)
	busy := func() *Server {
		s := handler(func(http.ResponseWriter, *http.Request) {
			began <- true
			<-proceed
		})
		s.MaxConns, s.AcceptQueue, s.OverloadResponse, s.AcceptTimeout = 1, 1, true, time.Nanosecond
		return s
	}
	addr := start(t, busy())
	wiretest.Dial(t, addr).Send(getRoot)
	wiretest.Await(t, began, "request")
	for range 3 {
		p := wiretest.Dial(t, addr)
		p.Send(getRoot)
		resp, body := p.Response("GET")
		if resp.StatusCode != http.StatusServiceUnavailable || !resp.Close || resp.Header.Get("Retry-After") != "1" || body == "" {
			t.Errorf("response %s %v %q", resp.Status, resp.Header, body)
		}
		p.Ended()
	}
	s := busy()
	dial(t, s, true).Send(getRoot)
	wiretest.Await(t, began, "request")
	s.mu.Lock()
	l := *oneOf(s.listeners)
	s.mu.Unlock()
	if rest := wiretest.Dial(t, l.Addr().String()).Ended(); rest != "" {
		t.Errorf("over TLS: %q", rest)
	}
}

func oneOf[K comparable, V any](m map[K]V) (k K) {
	for k = range m {
		break
	}
	return k
}

// A connection that Shutdown finds in the accept queue has as long for its first request as one that was just accepted.
func TestShutdownAfterLongInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 1, AcceptTimeout: time.Minute}
		l, proceed := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		first := l.dial(t)
		first.Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		queued := l.dial(t)
		time.Sleep(3 * firstRequestWithin)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		proceed <- true
		first.Status(http.StatusOK)
		time.Sleep(time.Second)
		queued.Send(getRoot)
		queued.Status(http.StatusOK)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Shutdown does not wait for longer for one that sends nothing.
func TestShutdownAndSilentInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{MaxConns: 1, AcceptTimeout: time.Minute}
		l, proceed := waiting(s)
		startOn(t, s, func() error { return s.Serve(l) })
		first := l.dial(t)
		first.Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
		silent := l.dial(t)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		time.Sleep(time.Second)
		proceed <- true
		first.Status(http.StatusOK)
		time.Sleep(2 * firstRequestWithin)
		if synctest.Wait(); len(ended) == 0 {
			t.Error("Shutdown has not ended")
		}
		silent.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Close closes a connection that waits for a place, or has received a 503, as well.
func TestCloseWithOverloadResponse(t *testing.T) {
	for _, queue := range []int{-1, 1} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{MaxConns: 1, AcceptQueue: queue, AcceptTimeout: time.Hour, OverloadResponse: true}
			l, proceed := waiting(s)
			startOn(t, s, func() error { return s.Serve(l) })
			l.dial(t).Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
			client, server := wstest.Pipe()
			l.conns <- server
			if synctest.Wait(); queue < 0 {
				wiretest.NewPeer(t, client).Status(http.StatusServiceUnavailable)
			}
			if _, err := io.WriteString(client, "more"); err != nil {
				t.Errorf("queue %d: closed early: %v", queue, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(client, "more"); err == nil {
				t.Errorf("queue %d: open", queue)
			}
			close(proceed)
		})
	}
}

// Shutdown has the connections that wait for a place served, Close closes them, and a hijacked connection has no place.
func TestEndWithAcceptQueue(t *testing.T) {
	for name, end := range map[string]func(*Server) error{
		"Shutdown": func(s *Server) error { return s.Shutdown(context.Background()) },
		"Close":    (*Server).Close,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{MaxConns: 1}
			l, proceed := waiting(s)
			startOn(t, s, func() error { return s.Serve(l) })
			first := l.dial(t)
			first.Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
			queued := l.dial(t)
			go func() { _, _ = io.WriteString(queued, getRoot) }()
			ended := make(chan error, 1)
			go func() { ended <- end(s) }()
			synctest.Wait()
			if name == "Close" {
				if isOpen(queued) {
					t.Error("Close has left a connection")
				}
				proceed <- true
			} else {
				if len(ended) > 0 || !isOpen(queued) {
					t.Error("Shutdown has not waited")
				}
				proceed <- true
				first.Status(http.StatusOK)
				queued.Status(http.StatusOK)
			}
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "taken")
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}()
	})
	s.MaxConns, s.AcceptTimeout = 1, time.Hour
	addr := start(t, s)
	for range 3 {
		p := wiretest.Dial(t, addr)
		p.Send("GET /take HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Receive("taken")
	}
	get(wiretest.Dial(t, addr))
}
