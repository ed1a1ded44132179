package clientbody

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/iolock"
)

// continuation is the 100 (Continue) that an HTTP/1 client expects, and keeps it and other interim responses apart.
// net/http's server sends it in the first read of the body, which may be another goroutine's than the one that writes an
// interim response into the same buffer: net/http makes that read wait for the final response alone. So the 100 is sent
// here, before that read, and net/http sends none behind it.
type continuation struct {
	r       *http.Request // nil: the client expects nothing
	timeout time.Duration // of the write, 0 for none
	began   time.Time     // when ExpectContinue was called

	lock iolock.Lock // guards due; held while an interim response is written
	due  bool        // the next read sends the 100
}

// ExpectContinue has the first read of the body send the 100 (Continue) that r expects. timeout bounds that write, 0
// means no bound. It is the handler's, before any read, WriteInterim or StartResponse.
func (b *Body) ExpectContinue(r *http.Request, timeout time.Duration) {
	if r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) {
		b.early.r, b.early.timeout, b.early.began, b.early.due = r, timeout, time.Now(), true
	}
}

// WriteInterim calls write, which writes an interim response, while no read sends a 100. Where only net/http can send
// that, since the writer's wrappers hide its own, write is not called: a client can do without.
func (b *Body) WriteInterim(write func()) {
	if b.early.r == nil {
		write()
		return
	}
	b.early.lock.Lock()
	defer b.early.lock.Unlock()
	if !b.early.due || b.isDuplex() {
		write()
	}
}

// StartResponse is called before the handler uses the writer or its Header for the final response. No read sends a 100
// behind it, but for net/http's, which the final response waits for. A client that has not been sent a 100 by then
// is sent none any more: its body is not waited for, as behind Unbound.
func (b *Body) StartResponse() {
	if b.early.r == nil {
		return
	}
	b.early.lock.Lock()
	defer b.early.lock.Unlock()
	unasked := !b.hasBegun() || b.early.due && b.isDuplex()
	b.early.due = false
	if unasked {
		b.Unbound()
	}
}

// sendContinue sends the 100 if it is due.
func (b *Body) sendContinue() {
	e := &b.early
	if e.r == nil {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if !e.due || !b.isDuplex() {
		return
	}
	e.due = false
	var writes deadline.Deadline
	writes.StartWrites(b.client, e.r, e.timeout)
	writes.Begin()
	_ = b.client.WriteContinue()
	writes.End()
	writes.Restore(e.began) // or the final response would meet it
	writes.Stop()
}

// hasBegun reports whether a read has: where wrappers hide the writer, net/http sends the 100 in the first.
func (b *Body) hasBegun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun
}

func (b *Body) isDuplex() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.duplex
}
