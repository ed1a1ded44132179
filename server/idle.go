package server

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/netloop"
)

// parkAfter is how long an idle connection keeps its goroutine, which is up to twice that. After it the connection is parked:
// it waits for its next request in one of netloop's loops. To park a connection and to serve it again costs about as much as
// a small request, which a busy one should not pay.
const parkAfter = 250 * time.Millisecond

// firstPark is by how much sooner a connection is parked whose first request was served. Most have one, and thousands that
// are opened at once would each need a goroutine, whose memory the runtime keeps for good.
const firstPark = 16

// errParked ends the goroutine of a connection that is parked. From then on another goroutine may serve it.
var errParked = errors.New("server: the connection is parked")

// initParking sets parks: a connection can be parked if it is a plain socket and the system has loops.
func (c *conn) initParking() {
	s := c.server
	d := s.idleTimeout()
	c.parks = (d == 0 || d > 2*s.parkAfter) && c.parked.Init(&s.parking, c.rwc, c.unpark) == nil
}

// SetIdleTimeout implements clientside.Idler.
func (w *writer) SetIdleTimeout(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.left {
		w.x.c.idle.Store(int64(max(d, 0)))
	}
}

// idleTimeout returns the bound for the wait for a request, 0 for none.
func (c *conn) idleTimeout() time.Duration {
	if d := time.Duration(c.idle.Load()); d > 0 {
		return d
	}
	return c.server.idleTimeout()
}

// boundIdle bounds the wait for the next request. The bound of a connection that can be parked is a multiple of its tick since
// it was accepted, so that a busy one has the same for many requests.
func (c *conn) boundIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads.until, c.headerEnds = time.Time{}, time.Time{}
	d, tick := c.idleTimeout(), c.server.parkAfter
	if c.parks && d > 0 && d <= 2*tick { // by SetIdleTimeout
		c.parks = false
	}
	if c.parks {
		if c.tick == 0 {
			tick /= firstPark
		}
		c.tick = tick
		c.reads.until = c.accepted.Add((time.Since(c.accepted)/tick + 2) * tick)
	} else if d > 0 {
		c.reads.until = time.Now().Add(d)
	}
}

// mayPark reports whether err is that of a read by which a connection that can be parked has reached its bound.
func (c *conn) mayPark(err error) bool {
	return err != nil && c.parks && c.is(http.StateIdle) && errors.Is(err, os.ErrDeadlineExceeded)
}

// park parks the connection: it returns errParked. If the system refuses that, it waits here.
func (c *conn) park() error {
	var rest time.Duration
	if d := c.idleTimeout(); d > 0 {
		rest = d - c.tick
	}
	c.shed()
	if c.parked.Wait(rest) == nil {
		return errParked // c may be another goroutine's
	}
	c.wake()
	c.parks = false
	c.boundIdle()
	return c.awaitByte()
}

// shed frees what a connection need not have while it is parked.
func (c *conn) shed() {
	c.freePeeker()
	c.remoteAddr, c.watch.ended = "", nil
}

// wake makes again what shed has freed.
func (c *conn) wake() {
	c.learnAddr()
	c.initPeek()
}

// unpark serves a connection that was parked.
func (c *conn) unpark(why netloop.Reason) {
	var err error
	defer c.end(&err)
	defer c.recoverHook()
	c.wake()
	if why == netloop.Readable {
		c.boundIdle()
		err = c.serveRequests()
	}
}

// close closes the socket at any time. The connection's goroutine ends by that; if it is parked, there is none. It does not
// wait for a client that does not read the alert of TLS about the end.
func (c *conn) close() {
	if _, secure := c.rwc.(*tls.Conn); secure {
		go c.rwc.Close()
		return
	}
	_ = c.rwc.Close()
	if c.parked.Stop() {
		go c.end(new(error))
	}
}

var _ clientside.Idler = (*writer)(nil)
