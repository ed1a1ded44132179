package replay

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/http1"
)

var errHeaderStalled = fmt.Errorf("the response's header came to a halt: %w", os.ErrDeadlineExceeded)

// expectation is a client's Expect: 100-continue. Reading its body makes net/http send the client a 100, and the transport
// reads it also where the target has refused it, only to keep the connection. Then the client would send a body
// that the target does not want, so that read gets nothing, and the connection to the target ends with the exchange
// (RFC 9110 section 10.1.1).
type expectation struct {
	expect        expectState
	headerEnded   bool          // the final header was received
	late          bool          // it was not, within lateAfter of headerBegan
	lateContinues bool          // what follows then: the client is sent a 100; else the read fails
	lateAfter     time.Duration // 0: there is no bound, or another one
	headerBegan   time.Time     // when the target's first byte was received
}

// expectState is the state of an attempt whose client expects a 100 (Continue).
type expectState uint8

const (
	expectNothing   expectState = iota // the client waits for nothing
	expectWaiting                      // it waits, and the target has said nothing
	expectWithheld                     // so it does, and the target has the header, but the body is not sent before it requests it or has had some time
	expectResponded                    // the target's first byte was received: of a 1xx, or of a response that refuses the body
	expectContinued                    // the client was sent a 100, or the target has sent a 1xx, after which anything may follow
)

func expectsContinue(r *http.Request) bool {
	return header.HasToken(r.Header["Expect"], "100-continue")
}

// Expects reports whether the client waits for a 100 before it sends the body.
func (a *Attempt) Expects() bool {
	if a.body.reader == nil {
		return false
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	return a.expect != expectNothing
}

// BoundHeader is called before the first read where nothing else ends a read that waits for the rest of a header, which
// may take timeout from its first byte on. 0 means that nothing bounds it: then the client is sent a 100 when the target has
// had its time to think about Expect, since over HTTP/1 nothing but a read notices a client that leaves.
func (a *Attempt) BoundHeader(timeout time.Duration) {
	a.lateAfter, a.lateContinues = timeout, timeout == 0
	if a.lateContinues {
		a.lateAfter = http1.ExpectTimeout
	}
}

// Withheld is called when the header has been sent, and the body is not until the target requests it or has had some time.
func (a *Attempt) Withheld() { a.advanceLocking(expectWithheld) }

// InterimReceived is called with each interim response.
func (a *Attempt) InterimReceived() { a.advanceLocking(expectContinued) }

// FirstByte is called when the first byte of a response was received, of an interim one perhaps.
func (a *Attempt) FirstByte() {
	if a.body.reader == nil {
		return
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.responded = true
	if a.expect < expectResponded {
		a.headerBegan = time.Now()
	}
	a.advance(expectResponded)
}

// HeaderReceived is called when the final header was received.
func (a *Attempt) HeaderReceived() {
	if a.body.reader == nil {
		return
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.headerEnded = true
}

// advanceLocking is advance for callers that do not hold the body's mu.
func (a *Attempt) advanceLocking(to expectState) {
	if a.body.reader == nil {
		return
	}
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.advance(to)
}

// advance takes the expectation of an attempt that has not ended to a later state.
func (a *Attempt) advance(to expectState) {
	if a.expect != expectNothing && a.expect < to && a.state != ended {
		a.expect = to
		a.body.changed.Broadcast()
	}
}

// awaitWanted is called before a read, and waits while the target may refuse the body. A body that was begun to be read is
// no longer refused: the target waits for the rest of it. The caller holds the body's mu.
func (a *Attempt) awaitWanted() error {
	if a.expect != expectResponded {
		a.advance(expectContinued)
		return nil
	}
	a.abandonRest()
	if err := a.awaitVerdict(); err != nil {
		return err
	}
	a.wantRest()
	return nil
}

// awaitVerdict waits until the body is wanted, which is nil. It fails at the end of the attempt, or of its context, and when
// the target does not end the header that it has begun: net/http's transport waits for the read before it returns. An error
// before that would take the response with it. The attempt's own context counts: the request's ends a moment before those
// made of it, and a failure in between would look like the target's.
func (a *Attempt) awaitVerdict() error {
	defer context.AfterFunc(a.ctx, a.body.wake)()
	if a.lateAfter > 0 && !a.headerEnded {
		defer time.AfterFunc(time.Until(a.headerBegan.Add(a.lateAfter)), a.setLate).Stop()
	}
	for {
		switch {
		case a.expect == expectContinued:
			return nil
		case a.state == ended || a.ctx.Err() != nil:
			return http1.ErrNotWanted
		case a.late && a.lateContinues:
			a.advance(expectContinued)
		case a.late:
			return errHeaderStalled
		default:
			a.body.changed.Wait()
		}
	}
}

func (a *Attempt) setLate() {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.late = !a.headerEnded
	a.body.changed.Broadcast()
}
