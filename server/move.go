package server

import (
	"net"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/http1"
)

var _ clientbody.Source = (*body)(nil)

// Move implements clientbody.Source.
func (b *body) Move(to clientbody.Taker, most int64, begin func() bool) (n int64, ended bool, err error) {
	b.lock()
	defer b.mu.Unlock()
	socket := b.socket()
	if socket == nil {
		return 0, false, nil
	}
	c := b.x.c
	c.mu.Lock()
	c.applyReadDeadline()
	c.mu.Unlock()
	received, _ := c.peek.Available()
	if n = min(received, most, b.content.MostMovable()); n == 0 || !begin() {
		return 0, false, nil // Read returns the failure
	}
	n, err = to.Take(socket, n)
	if b.content.Took(n); b.content.Whole() {
		b.ended.Store(true)
		b.x.ctx.bodySettled()
	}
	if err != nil && c.readsEnded() {
		err = nil // it is the client's side that has failed, which Read returns
	}
	return n, b.content.Whole(), err
}

// readsEnded reports whether reads of the socket fail by now: their deadline has passed, or it was closed.
func (c *conn) readsEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.reads.set.IsZero() && !time.Now().Before(c.reads.set) || c.peek.Look() == http1.Unknown
}

// socket returns the client's socket if the next bytes of the body are read from it as they are, else nil. The caller holds
// b.mu.
func (b *body) socket() *net.TCPConn {
	c := b.x.c
	if len(b.ahead) > 0 || b.content.MostMovable() == 0 || b.closed.Load() || b.expects && !b.begun {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch.hasByte || c.hijacked {
		return nil
	}
	socket, _ := c.rwc.(*net.TCPConn)
	return socket
}
