package server

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/http1"
)

// The bounds of what a handler has left of a request's body, so that the connection can be kept: 256 KiB as in net/http.
const drainBytes = 256 << 10

var drainWithin = time.Second // tests have a slow machine

// aheadBytes bounds what is read ahead of a body whose response has begun, to notice that the client leaves.
const aheadBytes = 4 << 10

// body is a request's body. The handler may read it while it writes the response.
type body struct {
	x       *exchange
	expects bool        // the client waits for a 100 (Continue)
	settled atomic.Bool // the response has begun, or the handler has closed it: what remains may be read ahead
	ended   atomic.Bool // it was read to its end
	broken  atomic.Bool // its end can't be found
	closed  atomic.Bool // by the handler, or since it has returned

	// mu guards what follows. It is held while the body is read.
	mu      sync.Mutex
	content http1.Content
	begun   bool        // a read has: the 100 (Continue) was due
	ahead   []byte      // what was read ahead
	trailer http.Header // what was received behind the body; the handler gets it with the end
}

// Read implements io.Reader. The first read sends the 100 (Continue) that the client waits for.
func (b *body) Read(p []byte) (int, error) {
	b.lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.expects && !b.begun {
		b.begun = true
		b.x.w.WriteContinue()
	}
	if len(b.ahead) > 0 {
		n := copy(p, b.ahead)
		if b.ahead = b.ahead[n:]; b.ended.Load() {
			b.x.ctx.bodySettled() // lock may have ended the watch
		}
		return n, nil
	}
	n, err := b.receive(p)
	if err == io.EOF {
		b.x.addTrailer(b.trailer)
		b.trailer = nil
		b.x.ctx.bodySettled()
	}
	return n, err
}

// Ready implements clientbody.Receiver.
func (b *body) Ready() bool {
	return b.look(func() bool {
		awaits := b.expects && !b.begun // a 100 (Continue), which a read sends
		return !awaits && (len(b.ahead) > 0 || b.content.Ready())
	})
}

// Received implements clientbody.Receiver.
func (b *body) Received() bool { return b.look(b.content.Received) }

// look returns what received reports, and false while the body is being read.
func (b *body) look(received func() bool) bool {
	if b.closed.Load() || !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	return received()
}

// lock is b.mu.Lock for a read. It ends reading ahead: what is received from now on is the caller's. Behind its handler a read
// fails, and the watch may be a later request's.
func (b *body) lock() {
	c := b.x.c
	c.mu.Lock()
	if c.current == b.x && !b.ended.Load() {
		c.stopWatchingLocked()
	}
	locked := b.mu.TryLock() // while c.mu is held, since no watch starts then
	c.mu.Unlock()
	if !locked {
		b.mu.Lock()
	}
}

// receive reads from the connection. The caller holds b.mu.
func (b *body) receive(p []byte) (int, error) {
	n, err := b.content.Read(p)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case err != nil && b.content.Broken():
		b.broken.Store(true)
	}
	return n, err
}

// lockAhead is b.mu.TryLock for readAhead. It reports false if the body is being read, or if too much of it remains.
func (b *body) lockAhead() bool {
	if !b.mu.TryLock() {
		return false
	}
	if b.content.Broken() || b.content.Left() > int64(b.aheadRoom()) {
		b.mu.Unlock()
		return false
	}
	return true
}

// aheadRoom returns how much may be read ahead. What a handler will not read takes no memory.
func (b *body) aheadRoom() int {
	if b.closed.Load() {
		return drainBytes
	}
	return aheadBytes - len(b.ahead)
}

// readAhead reads what remains of the body, after lockAhead. It reports whether it has reached the end.
func (b *body) readAhead() bool {
	defer b.mu.Unlock()
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for left := b.aheadRoom(); left > 0; {
		n, err := b.receive(buf[:min(left, len(buf))])
		if !b.closed.Load() {
			b.ahead = append(b.ahead, buf[:n]...)
		}
		if left -= n; err != nil {
			return err == io.EOF
		}
	}
	return b.content.Whole()
}

// Close implements io.Closer. Later reads fail. What remains is read when the handler has returned, or to notice that the
// client leaves.
func (b *body) Close() error {
	b.closed.Store(true)
	b.settle()
	return nil
}

// settle is called when the response begins, and when the handler closes the body.
func (b *body) settle() {
	if !b.ended.Load() {
		b.settled.Store(true)
		b.x.ctx.bodySettled()
	}
}

// leave makes reads fail from now on, since the handler has returned, and one that is under way.
func (b *body) leave() {
	b.closed.Store(true)
	if b.mu.TryLock() {
		b.mu.Unlock()
		return
	}
	c := b.x.c
	c.mu.Lock()
	c.reads.failing = true
	c.applyReadDeadline()
	c.mu.Unlock()
	b.mu.Lock()
	c.mu.Lock()
	c.reads.failing = false
	c.mu.Unlock()
	b.mu.Unlock()
}

// awaited reports whether the client waits for a 100 (Continue) that was not sent. It may never send the body then.
func (b *body) awaited() bool { return b.expects && !b.ended.Load() && !b.x.w.continued.Load() }

// tooLong reports whether so much of the body remains that it is not read for the next request's sake. The handler has
// returned.
func (b *body) tooLong() bool { return b.content.Broken() || b.content.Left() > drainBytes }

// drain reads what the handler has left, within bounds. It reports whether the body has ended: else the next request
// can't be found. A deadline that the handler has set is kept if it is sooner.
func (b *body) drain() bool {
	if b.content.Whole() {
		return true
	}
	if b.awaited() || b.tooLong() {
		return false
	}
	c := b.x.c
	c.mu.Lock()
	if until := time.Now().Add(drainWithin); c.reads.until.IsZero() || until.Before(c.reads.until) {
		c.reads.until = until
	}
	c.mu.Unlock()
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for left := drainBytes; left > 0; {
		n, err := b.content.Read(buf)
		if err != nil {
			return err == io.EOF
		}
		left -= n
	}
	return false
}

// setReadDeadline sets the deadline of reads of x's body. It reports false if the handler has returned.
func (c *conn) setReadDeadline(x *exchange, t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != x || c.hijacked {
		return false
	}
	c.reads.until = t
	if !c.watch.running { // the watch has no deadline: the client may take any time to leave
		c.applyReadDeadline()
	}
	return true
}

// writesEnded reports whether writes for x's handler fail by now: it has returned, or their deadline has passed.
func (c *conn) writesEnded(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != x || !c.writes.set.IsZero() && !time.Now().Before(c.writes.set)
}

// setWriteDeadline is setReadDeadline for writes.
func (c *conn) setWriteDeadline(x *exchange, t time.Time) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != x || c.hijacked {
		return false, nil
	}
	c.writes.until = t
	return true, c.applyWriteDeadline()
}

// interruptWrite ends a write that is under way, since the handler has returned, unless that has taken the connection.
func (c *conn) interruptWrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hijacked {
		c.writes.failing = true
		_ = c.applyWriteDeadline()
	}
}

// resumeWrites is called if interruptWrite has interrupted none.
func (c *conn) resumeWrites() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes.failing = false
	_ = c.applyWriteDeadline()
}
