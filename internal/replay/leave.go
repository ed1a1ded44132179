package replay

import (
	"context"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientbody"
)

var _ clientbody.Reopener = (*Attempt)(nil)

// leaving ends an attempt over a transport without its read of the client's body. Over HTTP/2 net/http's transport waits
// for that read, and so for the client's next bytes, where the stream has broken off before its response, and where the body
// of a response is closed; unless the context of the request has ended, which is one of its own here, so that what the
// attempt has failed with remains known. An attempt whose body is there as a whole has none.
type leaving struct {
	leave     context.CancelFunc // nil: the attempt need not be left. It and left are set before the first read
	left      <-chan struct{}    // closed by leave, or where the attempt's time is over
	inRead    bool               // the transport reads
	traced    bool               // it reports its connections, and so the first byte of a response
	closed    bool               // it will read no more over the last of them
	responded bool               // the first byte of a response was received, of an interim one perhaps
	returned  bool               // RoundTrip has returned
}

// returnTime is more than RoundTrip needs to return, once the header of a final response has been received.
const returnTime = time.Second

// noticeTime is more than RoundTrip needs to notice that the stream has broken off, on a busy machine, too: where it learns of the
// leaving at the same moment, it may return that in the place of what the stream has broken off with, a refusal of the request for one.
const noticeTime = 50 * time.Millisecond

// Leavable returns the context of the request that the transport sends, and reports whether the attempt can be left. It is
// called before the first read. ctx is the attempt's.
func (a *Attempt) Leavable(ctx context.Context) (sending context.Context, leavable bool) {
	if a.body.reader == nil || a.whole != nil {
		return ctx, false
	}
	sending, a.leave = context.WithCancel(ctx)
	a.left = sending.Done()
	return sending, true
}

// Leave ends the transport's wait for the body.
func (a *Attempt) Leave() {
	if a.leave != nil {
		a.leave()
	}
}

// hasLeft reports whether the attempt was left, or its time is over.
func (a *Attempt) hasLeft() bool {
	select {
	case <-a.left:
		return true
	default:
		return false
	}
}

// readOrLeave reads until the attempt is left: the transport ends its stream no sooner than its read has returned, and the target would
// have the request until then, beside one that has been given its place (upstream.Target.MaxConns). What the client sends next is for the
// next attempt. A body that can't be sent to another target needs none of that: the read ends with the handler.
func (a *Attempt) readOrLeave(p []byte, at int64) (int, error) {
	switch {
	case a.leave == nil:
		return a.next(p, at)
	case a.hasLeft(): // a read before may be under way
		return 0, errEnded
	case !a.body.Replayable():
		return a.next(p, at)
	}
	type result struct {
		n   int
		err error
	}
	buf, read := bufpool.Get(), make(chan result, 1) // p is the transport's again when it has left
	go func() {
		var r result
		defer func() { read <- r }()
		defer a.body.Catch(&r.err)
		r.n, r.err = a.next(buf[:min(len(p), len(buf))], at)
	}()
	select {
	case r := <-read:
		n := copy(p, buf[:r.n])
		bufpool.Put(buf)
		return n, r.err
	case <-a.left:
		return 0, errEnded
	}
}

// hasClosed reports whether the transport has closed the body, and is not to read again. The caller holds the body's mu.
func (a *Attempt) hasClosed() bool { return a.closed && a.leave != nil }

// Connected is called when the transport has a connection. Over HTTP/2 it may have closed the body then, unread, where it has found
// that it could not use the one before: it reads the body over this one.
func (a *Attempt) Connected() {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.traced = true
	a.reopen()
}

// Reopen implements clientbody.Reopener, for a group's transport that sends the request over another connection.
func (a *Attempt) Reopen() bool {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	if a.state == ended || a.sent > 0 {
		return false
	}
	a.reopen()
	return true
}

// reopen lets the transport read again that has closed the body. The caller holds the body's mu.
func (a *Attempt) reopen() {
	a.closed = false
	a.wantRest()
}

// Returned is called when RoundTrip has returned: from then on nothing bounds how long the target takes to accept the body.
func (a *Attempt) Returned() {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.returned = true
	a.stopStall()
}

// leaveUnread is called when the transport closes the body. With a read under way the stream has broken off, or a final
// response refuses the rest: behind that RoundTrip returns as soon as it has noticed. The caller holds the body's mu.
func (a *Attempt) leaveUnread() {
	a.closed = true
	if a.leave == nil || !a.inRead {
		return
	}
	after := returnTime
	if a.traced && !a.responded {
		after = noticeTime
	}
	time.AfterFunc(after, a.leaveUnlessReturned)
}

func (a *Attempt) leaveUnlessReturned() {
	a.body.mu.Lock()
	returned := a.returned
	a.body.mu.Unlock()
	if !returned {
		a.Leave()
	}
}
