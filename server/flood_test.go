package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// keptClient makes requests over one connection after the other, each until it is closed.
type keptClient struct {
	addr string
	conn net.Conn
	r    *bufio.Reader
}

// exchange makes one request. It reports whether it was served.
func (c *keptClient) exchange() bool {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			return false
		}
		c.conn, c.r = conn, bufio.NewReader(conn)
	}
	_, _ = io.WriteString(c.conn, getRoot)
	resp, err := http.ReadResponse(c.r, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		c.conn.Close()
		c.conn = nil
		return false
	}
	return true
}

// A flood of connections that send nothing is shed: clients that are busy are served before, during and after it, also if
// they have to connect again, there are never more than MaxConns connections, and none is forgotten.
func TestFlood(t *testing.T) {
	leaktest.Check(t)
	const maxConns, clients = 500, 20
	s := handler(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	s.MaxConns, s.OverloadResponse = maxConns, true
	addr := start(t, s)
	var served, failed atomic.Int64
	var load sync.WaitGroup
	ended, progress := make(chan bool), make(chan bool)
	for range clients {
		load.Go(func() {
			c := &keptClient{addr: addr}
			for {
				select {
				case <-ended:
					if c.conn != nil {
						c.conn.Close()
					}
					return
				default:
				}
				if c.exchange() {
					served.Add(1)
					select {
					case progress <- true:
					default: // nothing waits for it
					}
				} else {
					failed.Add(1)
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	phase := func(what string, during func()) {
		begun, before, bad := time.Now(), served.Load(), failed.Load()
		during()
		for served.Load() < before+10*clients {
			wiretest.Await(t, progress, "request that is served")
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		took := time.Since(begun)
		t.Logf("%s: %.0f requests a second, %d failed, in %v; memory in use: %.1f MiB, stats %+v", what,
			float64(served.Load()-before)/took.Seconds(), failed.Load()-bad, took.Round(time.Millisecond),
			float64(m.HeapInuse+m.StackInuse)/(1<<20), s.ConnStats())
	}
	pause := func() { time.Sleep(time.Duration(wiretest.Size(3000, 100)) * time.Millisecond) }
	phase("before", pause)
	phase("during", func() { flood(t, s, addr, wiretest.Size(20_000, 2000), maxConns) })
	phase("after", pause)
	close(ended)
	load.Wait()
	if drained := s.awaitDrained(); drained != nil {
		wiretest.Await(t, drained, "end of the last connection")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := &s.admission; a.placed != 0 || len(a.byAddr) != 0 || len(a.queue) != 0 {
		t.Errorf("admission has %d placed, %d addresses, %d in its queue", a.placed, len(a.byAddr), len(a.queue))
	}
}

// flood connects n times, and waits until the server has closed most of the connections.
func flood(t *testing.T, s *Server, addr string, n, maxConns int) {
	const workers = 16
	conns := make(chan net.Conn, n)
	var dialling, reading sync.WaitGroup
	for range workers {
		dialling.Go(func() {
			for range n / workers {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Errorf("flood: %v", err)
					return
				}
				conns <- conn
				reading.Go(func() {
					_, _ = io.Copy(io.Discard, conn)
					conn.Close()
				})
				if stats := s.ConnStats(); stats.Waiting > defaultAcceptQueue+1 || s.places() > maxConns {
					t.Errorf("too many connections: %+v", stats)
				}
			}
		})
	}
	dialling.Wait()
	close(conns)
	for conn := range conns {
		conn.Close()
	}
	reading.Wait()
}

// places returns how many connections have a place.
func (s *Server) places() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admission.placed
}
