package server

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// states records the states of connections.
type states struct {
	mu  sync.Mutex
	all map[net.Conn][]http.ConnState
}

func (r *states) record(c net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[net.Conn][]http.ConnState{}
	}
	r.all[c] = append(r.all[c], state)
}

// each expects that n connections have had the states.
func (r *states) each(t *testing.T, n int, want ...http.ConnState) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) != n {
		t.Errorf("%d connections, want %d", len(r.all), n)
	}
	for _, got := range r.all {
		if !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
	}
}

// parking returns a server that parks its connections at once. They have had one request each.
func parking(t *testing.T, s *Server, n int) (clients []*rawClient) {
	t.Helper()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(okBody) })
	s.parkAfter = time.Millisecond
	addr := start(t, s)
	for range n {
		c := dialRaw(t, addr)
		c.get(t)
		clients = append(clients, c)
	}
	awaitParked(t)
	return clients
}

// awaitParked waits until no connection has a goroutine.
func awaitParked(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 8<<20)
	for begun := time.Now(); strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "server.(*conn)"); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("an idle connection has a goroutine:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// ended expects that the server closes the connection and sends nothing more.
func (c *rawClient) ended(t *testing.T) {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := c.conn.Read(c.buf[:]); n > 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// An idle connection has no goroutine, is served again when it sends a request, and is closed by all that closes idle
// connections. Its states do not show that it was parked.
func TestParkedConnections(t *testing.T) {
	for name, end := range map[string]func(s *Server){
		"Shutdown": func(s *Server) {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		},
		"Close":                func(s *Server) { _ = s.Close() },
		"SetKeepAlivesEnabled": func(s *Server) { s.SetKeepAlivesEnabled(false) },
	} {
		t.Run(name, func(t *testing.T) {
			var r states
			s := &Server{ConnState: r.record}
			clients := parking(t, s, 20)
			for range 2 {
				for _, c := range clients {
					c.get(t)
				}
				awaitParked(t)
			}
			end(s)
			for _, c := range clients {
				c.ended(t)
			}
			if drained := s.awaitDrained(); drained != nil {
				wiretest.Await(t, drained, "end of the connections")
			}
			r.each(t, len(clients), http.StateNew, http.StateActive, http.StateIdle, http.StateActive, http.StateIdle,
				http.StateActive, http.StateIdle, http.StateClosed)
		})
	}
}

// A parked connection ends when its client closes it, and after IdleTimeout.
func TestParkedConnectionEnds(t *testing.T) {
	for name, idle := range map[string]time.Duration{"by the client": 0, "in time": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var r states
			s := &Server{ConnState: r.record, IdleTimeout: idle}
			for _, c := range parking(t, s, 5) {
				if idle == 0 {
					_ = c.conn.Close()
				} else {
					c.ended(t)
				}
			}
			if drained := s.awaitDrained(); drained != nil {
				wiretest.Await(t, drained, "end of the connections")
			}
			r.each(t, 5, http.StateNew, http.StateActive, http.StateIdle, http.StateClosed)
		})
	}
}

// A connection that is parked soon behind its first request is not closed before IdleTimeout.
func TestFirstParkKeepsIdleTimeout(t *testing.T) {
	s := handler(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(okBody) })
	s.IdleTimeout, s.parkAfter = 210*time.Millisecond, 100*time.Millisecond
	addr := start(t, s)
	for _, requests := range []int{1, 2} { // behind the second one it keeps its goroutine for longer
		c := dialRaw(t, addr)
		var begun time.Time
		for range requests {
			begun = time.Now()
			c.get(t)
		}
		c.ended(t)
		if idle := time.Since(begun); idle < s.IdleTimeout {
			t.Errorf("%d requests: closed after %v", requests, idle)
		}
	}
}

// If the system refuses to park connections, they wait on their goroutines, no longer than IdleTimeout.
func TestParkingRefused(t *testing.T) {
	for _, idle := range []time.Duration{0, 50 * time.Millisecond} {
		refused := make(chan bool, 1)
		s := &Server{IdleTimeout: idle, parkAfter: time.Millisecond}
		s.parking.Control = func(int, int, int, *syscall.EpollEvent) error {
			refused <- true
			return syscall.ENOSPC
		}
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(okBody) })
		c := dialRaw(t, start(t, s))
		c.get(t)
		wiretest.Await(t, refused, "attempt to park the connection")
		if idle == 0 {
			c.get(t)
		} else {
			c.ended(t)
		}
	}
}

// No request is lost while connections are parked at random moments, until the server is shut down.
func TestRequestsWhileParking(t *testing.T) {
	var r states
	s := &Server{ConnState: r.record}
	clients := parking(t, s, 32)
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() {
			for range wiretest.Size(1000, 200) {
				if pause := rand.IntN(4); pause > 0 {
					time.Sleep(time.Duration(pause) * 500 * time.Microsecond)
				}
				if _, err := c.conn.Write(rawGet); err != nil {
					t.Error(err)
					return
				}
				if n, err := c.conn.Read(c.buf[:]); n == 0 {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	for _, c := range clients {
		c.ended(t)
	}
	for _, got := range r.all {
		if n := len(got); got[n-1] != http.StateClosed || slices.Index(got, http.StateClosed) != n-1 {
			t.Errorf("states %v", got)
		}
	}
}

// An idle connection keeps nothing of the memory that a large header has needed.
func TestIdleAfterALargeHeader(t *testing.T) {
	const n = 20
	s := &Server{}
	clients := parking(t, s, n)
	before := heap()
	large := []byte("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 512<<10) + "\r\n\r\n")
	for _, c := range clients {
		if _, err := c.conn.Write(large); err != nil {
			t.Fatal(err)
		}
		if _, err := c.conn.Read(c.buf[:]); err != nil {
			t.Fatal(err)
		}
	}
	awaitParked(t)
	if each := (heap() - before) / n; each > 64<<10 {
		t.Errorf("an idle connection keeps %d bytes", each)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // for what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A connection that would be parked ends in time if the handler shortens the wait.
func TestShortIdleTimeoutOfOne(t *testing.T) {
	s := handler(func(w http.ResponseWriter, _ *http.Request) { clientside.SetIdleTimeout(w, 10*time.Millisecond) })
	s.IdleTimeout = time.Hour
	p := wiretest.Dial(t, start(t, s))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	p.Status(http.StatusOK)
	if rest := p.Ended(); rest != "" {
		t.Errorf("received %q", rest)
	}
}
