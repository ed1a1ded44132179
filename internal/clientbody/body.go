// Package clientbody holds the client's side of a request's body for the time of one handler: who reads the body,
// how long the client may take, and that both end with the handler.
package clientbody

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
)

// Body reads a request's body. It alone sets the client's read deadline while it is in use.
// Finish stops the goroutine that reads, and waits for it: behind Finish neither the body nor the client is
// reached through a Body. The zero Body has no content. All methods may be called by any goroutine, but for
// Start and Finish, which are the handler's; there is one reader at a time.
type Body struct {
	client *clientside.Handle
	body   io.ReadCloser
	http1  bool
	small  bool // what there is of it may be read behind the handler's failure
	duplex bool // HTTP/1: the response may begin before the body has ended
	early  continuation

	// mu guards what follows, and the client's read deadline with it. While state is reading, the goroutine in Read
	// owns body; it is the handler's again once that goroutine has closed left.
	mu       sync.Mutex
	state    state
	reads    deadline.Deadline
	begun    bool          // a read has
	moving   bool          // what was received is being moved to the target (Move)
	late     bool          // the request's time was over while it was
	unwanted bool          // Unbound was called
	err      error         // what reads fail with from now on, io.EOF where the body has ended
	left     chan struct{} // not nil: closed by the read that Finish waits for
}

// state is a Body's: behind fresh idle and reading alternate until it is expired or finished.
type state int

const (
	fresh    state = iota // nothing was read
	idle                  // no Read is under way
	reading               // one is
	expired               // none is, and the next one fails: the request's time is over
	draining              // Finish reads the rest
	finished              // the handler has ended
)

var (
	// ErrFinished is what a Read behind Finish fails with.
	ErrFinished = errors.New("the exchange has ended")
	errTooSlow  = fmt.Errorf("the request's time is over: %w", os.ErrDeadlineExceeded)
)

// Start makes b the body of r, the request of client. timeout bounds each read, to a quarter; 0 means no bound.
// The deadline of r's context bounds them all.
func (b *Body) Start(client *clientside.Handle, r *http.Request, timeout time.Duration) {
	b.client, b.body, b.http1 = client, r.Body, r.ProtoMajor == 1
	b.reads.StartReads(client, r, timeout)
	b.small = r.ContentLength <= drainMost && r.Header["Expect"] == nil
}

// StartEnded makes b a body that was read to its end before.
func (b *Body) StartEnded() { b.err = io.EOF }

// FullDuplex lets an HTTP/1 response begin before the body has ended, where the writer can (not those of tests, for
// instance). HTTP/2 always does.
func (b *Body) FullDuplex() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.http1 && !b.duplex {
		b.duplex = b.client.EnableFullDuplex() == nil
	}
}

// Claim is called before the body is given to a reader of which it is not known when it reads: Finish leaves the
// body alone then.
func (b *Body) Claim() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == fresh {
		b.state = idle
	}
}

// Read reads from the body. A client that takes too long is os.ErrDeadlineExceeded.
func (b *Body) Read(p []byte) (n int, err error) {
	if err := b.enter(); err != nil {
		return 0, err
	}
	defer func() { b.leave(err) }() // also where a filter's body panics
	b.sendContinue()
	return b.body.Read(p)
}

// enter begins a read, and gives it its time.
func (b *Body) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.state == draining || b.state == finished:
		return ErrFinished
	case b.state == expired && b.err == nil:
		b.err = errTooSlow
		fallthrough
	case b.err != nil:
		return b.err
	}
	b.state, b.begun = reading, true
	b.reads.Begin()
	return nil
}

// leave ends a read. Behind the body's end net/http continues to read, to notice a client that leaves: that has no
// deadline.
func (b *Body) leave(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.reads.End()
	if b.state == finished {
		close(b.left)
		return
	}
	b.state = idle
	if b.late {
		b.state = expired
	}
	if b.err == io.EOF {
		b.reads.Clear()
	}
}

// Interrupt is called when the request's time is over: the read that is under way fails, and so do later ones.
// Where the body has ended they don't. cancel, which cancels the request's context, is called when Awaited
// knows whom the request waits for, and before the read fails: net/http cancels the context as well
// where a read has failed, as if the client had gone.
func (b *Body) Interrupt(cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	interrupts := b.err == nil && b.state == reading && !b.moving
	switch {
	case b.err == nil && b.moving:
		b.late = true // the request waits for the target
	case interrupts:
		b.err = errTooSlow
	case b.err == nil && (b.state == fresh || b.state == idle):
		b.state = expired
	}
	cancel()
	if interrupts {
		_ = b.reads.Expire()
	}
}

// Awaited reports whether a read waits for the client, or has failed since the client took too long. It does not wait
// for what the target does not want (Unbound).
func (b *Body) Awaited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == reading && !b.moving && !b.unwanted || errors.Is(b.err, os.ErrDeadlineExceeded)
}

// Overdue reports whether the client has taken too long for a read, which has failed or is about to.
func (b *Body) Overdue() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == reading && b.reads.Passed() || errors.Is(b.err, os.ErrDeadlineExceeded)
}

// Unwatched reports whether only a read notices a client that leaves: over HTTP/1, before the body's end.
func (b *Body) Unwatched() bool {
	if b.body == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.duplex && b.err == nil
}

// Ended reports whether the body was read to its end.
func (b *Body) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err == io.EOF
}

// Failed reports whether a read of the body has failed, so that it is not known where it ends.
func (b *Body) Failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil && b.err != io.EOF
}

// Unbound gives later reads, and one that is under way, all the time there is: the client need not send what the target does
// not want.
func (b *Body) Unbound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads.Change(0, time.Time{})
	if b.state == reading {
		b.reads.Begin()
	}
	b.unwanted = true
}

// Close closes the body. It may be called while another goroutine reads.
func (b *Body) Close() error { return b.body.Close() }

// Finish ends the handler's time with the body: it breaks a read off that is under way, waits for it, and lets no
// other one begin.
//
// An HTTP/1 connection on which the body has not ended by then closes behind the response: "a server MUST read
// the entire request message body or close the connection after sending its response" (RFC 9112 section 9.3).
// net/http sees to that by itself, but not where the response may begin before: it breaks a read that is under way,
// forgets its failure, and takes what follows for the next request; or it reads the rest behind the response, and
// then reads twice at once, which panics. Over HTTP/2 the stream ends with the handler.
func (b *Body) Finish() {
	if b.body == nil {
		return
	}
	b.drain()
	if b.stop() {
		_ = b.client.CloseAfterResponse()
		_ = b.body.Close()
	}
}

// How much of a body is read that was not needed, and how long that may take.
const (
	drainMost = 64 << 10
	drainTime = 50 * time.Millisecond
)

// drain reads a small body that no target was to get, since none could be reached: its connection can be used
// again then.
func (b *Body) drain() {
	if !b.beginDrain() {
		return
	}
	var err error
	defer func() { b.endDrain(err) }() // also where a filter's body panics
	buf := make([]byte, 4<<10)
	for left := drainMost; left > 0 && err == nil; {
		var n int
		n, err = b.body.Read(buf)
		left -= n
	}
}

// beginDrain reports whether the body is to be drained, and bounds the time of that. Later reads fail.
func (b *Body) beginDrain() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != fresh || !b.duplex || !b.small {
		return false
	}
	b.state = draining
	b.reads.Change(0, time.Now().Add(drainTime))
	b.reads.Begin()
	return true
}

func (b *Body) endDrain(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	b.reads.End()
	if err == io.EOF {
		b.reads.Clear()
	}
}

// stop takes the body from its reader, and reports whether the connection can't be used behind it.
func (b *Body) stop() bool {
	b.mu.Lock()
	defer b.reads.Stop() // no read begins or waits by then
	if b.state == finished || b.err == io.EOF {
		b.state = finished
		b.mu.Unlock()
		return false
	}
	read := b.state == reading
	b.state = finished
	closes := b.http1 && (b.duplex || read || b.err != nil)
	if read {
		b.left = make(chan struct{})
	}
	switch {
	case read || closes: // or Close would wait for the client
		closes = b.reads.Expire() == nil && closes
	case b.http1:
		// net/http reads the rest of the body behind the response, up to a bound, and gives the client all
		// the time there is. It sets a deadline of its own before the next request.
		b.reads.Begin()
	}
	b.mu.Unlock()
	if read {
		_ = b.body.Close() // for a reader that waits for something else than the client, and a writer without deadlines
		<-b.left
	}
	return closes
}
