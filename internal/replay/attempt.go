package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Attempt is one attempt's body: the io.ReadCloser of the request that is sent to a target. It lasts from Start to
// Finish. Its methods are safe for concurrent use, but for those up to Attach, which come before the first read.
type Attempt struct {
	body    *Body
	ctx     context.Context // the attempt's
	whole   io.Reader       // nil: the body is streamed
	relayed func(trailer string) bool
	trailer http.Header // of the request that is sent

	// The body's mutex guards what follows.
	state    attemptState
	waits    bool      // a read waits for what the client sends next, or has failed since the client took too long
	sent     int64     // how many bytes reads have returned
	lastRead time.Time // when the client had sent what the last read got; zero: no read has
	expectation
	leaving
	stall
}

// attemptState is whether an Attempt owns the body. What is read of the client while no Attempt owns it is kept for the next one.
type attemptState uint8

const (
	open   attemptState = iota // it owns the body
	paused                     // it is being decided whether another attempt gets the rest
	ended                      // reads fail
)

var (
	errEnded    = errors.New("the attempt has ended")
	errNotOwned = errors.New("not this attempt's")
)

// owns reports whether what is read of the client now is a's. The caller holds the body's mu.
func (a *Attempt) owns() bool { return a.state == open }

// Start makes a the next attempt that reads b.
func (a *Attempt) Start(b *Body) {
	a.body = b
	switch {
	case b.reader == nil:
		return
	case b.whole != nil:
		a.whole = b.whole.Reader()
	case expectsContinue(b.in):
		a.expect = expectWaiting
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.wantRest()
}

// Attach makes a the body of out. ctx is the attempt's. relayed reports whether a trailer is sent; nil means all are.
func (a *Attempt) Attach(ctx context.Context, out *http.Request, relayed func(trailer string) bool) {
	a.ctx = ctx
	out.GetBody = nil
	if a.body.reader == nil {
		out.Body = nil
		return
	}
	out.Body = a
	a.relayed = relayed
	a.attachTrailers(out)
	if a.whole != nil {
		a.attachWhole(out)
	}
	if out.ContentLength < 0 {
		// Of a method that seldom has a body net/http's transport would hold the header back for 200 ms, to see a first
		// byte. The connection that it has taken may end meanwhile, or get a response that belongs to no request.
		out.TransferEncoding = chunked
	}
}

// attachWhole prepares the request for a body that was read as a whole: its length is known, and the client has sent it,
// so that Expect has no use any more.
func (a *Attempt) attachWhole(out *http.Request) {
	if out.Header["Expect"] != nil { // the map is shared with attempts that may still be read
		delete(out.Header, "Expect")
	}
	if out.ContentLength < 0 && len(out.Trailer) == 0 && !a.body.adopted {
		out.ContentLength, out.TransferEncoding = a.body.whole.Len(), nil
	}
}

// Read implements io.Reader.
func (a *Attempt) Read(p []byte) (n int, err error) {
	defer a.body.Catch(&err)
	at, err := a.startRead()
	defer func() { a.finishRead(n, err) }()
	if err != nil {
		return 0, err
	}
	n, err = a.readOrLeave(p, at)
	if err == io.EOF {
		a.copyTrailers()
	}
	return n, err
}

// startRead returns where in the body the read begins. It waits while the target may refuse the body.
func (a *Attempt) startRead() (at int64, err error) {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.stopStall()
	a.inRead = true
	if a.state == ended || a.hasClosed() {
		return 0, errEnded
	}
	return a.sent, a.awaitWanted()
}

// finishRead is called when a read returns n bytes and err.
func (a *Attempt) finishRead(n int, err error) {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.inRead = false
	a.sent += int64(n)
	if n > 0 || err == io.EOF {
		a.startStall()
	}
}

// next reads on from at: out of what was kept, else from the client.
func (a *Attempt) next(p []byte, at int64) (int, error) {
	if a.whole != nil {
		return a.nextOfWhole(p)
	}
	b := a.body
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		n, err := b.readFor(a, p, at)
		if err != errNotOwned {
			return n, err
		}
		for a.state == paused {
			b.changed.Wait()
		}
		if a.state == ended {
			return 0, errEnded
		}
	}
}

func (a *Attempt) nextOfWhole(p []byte) (int, error) {
	n, err := a.whole.Read(p)
	if err != nil && err != io.EOF {
		a.body.mu.Lock()
		defer a.body.mu.Unlock()
		a.body.failure = err
	}
	return n, err
}

// Sent returns how many bytes of the body were given to be sent.
func (a *Attempt) Sent() int64 {
	if !a.body.Exists() {
		return 0
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	return a.sent
}

// Pause holds back what the client sends, while it is decided whether another attempt gets it.
func (a *Attempt) Pause() { a.setState(paused) }

// Resume ends Pause: the attempt continues, or ends.
func (a *Attempt) Resume(continues bool) {
	if continues {
		a.setState(open)
	} else {
		a.setState(ended)
	}
}

// Finish ends the attempt: reads that are under way, or come later, get no more of the body.
func (a *Attempt) Finish() { a.setState(ended) }

func (a *Attempt) setState(s attemptState) {
	b := a.body
	if !b.Exists() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.state = s
	b.changed.Broadcast()
	if s == ended {
		a.stopStall()
	}
}

// Close implements io.Closer, for a transport that reads no more. The client's body ends with the handler.
func (a *Attempt) Close() error {
	b := a.body
	b.mu.Lock()
	defer b.mu.Unlock()
	a.stopStall()
	a.abandonRest()
	a.leaveUnread()
	return nil
}
