package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

const (
	stallConns   = 9_500 // both ends of 10,000 need more descriptors than a process often has
	stallWorkers = 32
	stallTurns   = 4     // for each connection
	stallAtOnce  = 2_500 // within an exchange: the race detector bears 8,128 goroutines
)

// staller is a client's connection, within an exchange or between two.
type staller struct {
	net.Conn
	unsent string
	want   []byte
	busy   bool
}

// begin chooses a request.
func (c *staller) begin(rnd *rand.Rand) {
	c.busy = true
	body := strings.Repeat("0123456789", rnd.IntN(2000))
	switch rnd.IntN(4) {
	case 0:
		c.unsent, c.want = getRoot, nil
	case 1:
		c.unsent = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
		c.want = wiretest.Pattern(100_000)
	case 2:
		c.unsent = fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		c.want = []byte(body)
	default:
		body += "x"
		c.unsent = fmt.Sprintf("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		c.want = []byte(body)
	}
}

// send sends a piece of the request.
func (c *staller) send(rnd *rand.Rand) error {
	n := len(c.unsent)
	if rnd.IntN(3) > 0 {
		n = rnd.IntN(n)
	}
	return c.sendUpTo(n)
}

func (c *staller) sendUpTo(n int) error {
	_, err := io.WriteString(c, c.unsent[:n])
	c.unsent = c.unsent[n:]
	return err
}

// finish ends an exchange, and makes another one.
func (c *staller) finish() error {
	defer c.Close()
	if c.busy {
		if err := errors.Join(c.sendUpTo(len(c.unsent)), c.receive()); err != nil {
			return err
		}
	}
	c.unsent, c.want = getRoot, nil
	return errors.Join(c.sendUpTo(len(getRoot)), c.receive())
}

// receive reads the response.
func (c *staller) receive() error {
	resp, err := http.ReadResponse(bufio.NewReader(c.Conn), nil) // nothing follows it
	if err != nil {
		return err
	}
	got, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(got, c.want) {
		err = fmt.Errorf("%d bytes, want %d", len(got), len(c.want))
	}
	c.busy = false
	return err
}

// Thousands of kept connections stall anywhere, in the header, in the body and before the response is read, and some leave there.
// The others are served, whole and in order.
func TestStalls(t *testing.T) {
	leaktest.Check(t)
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(wiretest.Pattern(100_000))
		case "/echo":
			body, err := io.ReadAll(r.Body) // a client that reads nothing while it sends would wait for itself
			if err == nil {
				_, _ = w.Write(body)
			}
		}
	})
	addr := start(t, s)
	n := wiretest.Size(stallConns, 400) / stallWorkers
	var busy atomic.Int64
	var workers sync.WaitGroup
	for range stallWorkers {
		workers.Go(func() {
			rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
			conns := make([]*staller, n)
			for i := range conns {
				conns[i] = dialStaller(addr)
			}
			for range stallTurns * 3 * n {
				c := &conns[rnd.IntN(n)]
				if err := turn(c, rnd, addr, &busy); err != nil {
					t.Error(err)
					return
				}
			}
			for _, c := range conns {
				if err := c.finish(); err != nil {
					t.Errorf("last exchange: %v", err)
				}
			}
		})
	}
	workers.Wait()
}

// turn makes a step of an exchange, or leaves within it.
func turn(c **staller, rnd *rand.Rand, addr string, busy *atomic.Int64) error {
	switch p := *c; {
	case p.busy && rnd.IntN(50) == 0:
		busy.Add(-1)
		if rnd.IntN(2) == 0 {
			_ = p.Conn.(*net.TCPConn).SetLinger(0)
		}
		p.Close()
		*c = dialStaller(addr)
	case !p.busy && busy.Load() < stallAtOnce:
		busy.Add(1)
		p.begin(rnd)
		return p.send(rnd)
	case p.busy && p.unsent != "":
		return p.send(rnd)
	case p.busy:
		busy.Add(-1)
		return p.receive()
	}
	return nil
}

func dialStaller(addr string) *staller {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err) // not on the test's goroutine
	}
	return &staller{Conn: conn}
}
