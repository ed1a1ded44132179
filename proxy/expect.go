package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/header"
)

var (
	errNotWanted     = errors.New("the target responded without asking for the body")
	errHeaderStalled = fmt.Errorf("the response's header came to a halt: %w", os.ErrDeadlineExceeded)
)

// expectation is a client's Expect: 100-continue. Reading its body makes
// net/http ask the client for it, and the transport reads it also where the
// target has refused it, only to keep the connection. Then the client would be
// asked for a body that the target does not want, so that read gets nothing, and
// the connection to the target ends with the exchange (RFC 9110 section 10.1.1).
type expectation struct {
	timeout time.Duration // of the response's header, from its first byte to its last; 0 for none
	endless bool          // nothing bounds that header

	mu       sync.Mutex // guards what follows
	state    expectState
	withheld bool          // the target has had the header alone, and neither has responded nor was sent the body
	begun    time.Time     // when the target's first byte has come
	settled  chan struct{} // closed when state is asked or over
	received chan struct{} // closed when the final header has been received
}

type expectState int

const (
	expectWaiting  expectState = iota // the client waits, and the target has said nothing
	expectAnswered                    // the target's first byte has come: of a 1xx, or of a response that refuses the body
	expectAsked                       // the client was asked, or the target has sent a 1xx, after which anything may follow
	expectOver                        // the exchange has ended
)

func newExpectation(in *http.Request) *expectation {
	if !expectsContinue(in) {
		return nil
	}
	return &expectation{settled: make(chan struct{}), received: make(chan struct{})}
}

func expectsContinue(r *http.Request) bool {
	return header.HasToken(r.Header["Expect"], "100-continue")
}

// firstByte is called when the target has begun to say something.
func (e *expectation) firstByte() {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.state == expectWaiting {
			e.state, e.begun, e.withheld = expectAnswered, time.Now(), false
		}
	}
}

// withhold is called when the header has been sent, and the body is not until the target asks for it or has had some time.
func (e *expectation) withhold() {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.withheld = e.state == expectWaiting
	}
}

// wasWithheld reports whether the target was still waited for, without the body, when the exchange ended: it has not had
// the request.
func (e *expectation) wasWithheld() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.withheld
}

// headerReceived is called once, when the final header has been received: its time is over.
func (e *expectation) headerReceived() {
	if e != nil {
		close(e.received)
	}
}

// settle ends the waiting: by a 1xx, or the end of the exchange.
func (e *expectation) settle(state expectState) {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.state < expectAsked {
			e.state = state
			e.withheld = e.withheld && state == expectOver
			close(e.settled)
		}
	}
}

// ask is called before a read of the body, and reports whether the target's response may refuse it: the read waits
// for settled then. A body that was begun to be read is no longer refused: the target waits for the rest of it.
func (e *expectation) ask() (refused bool) {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == expectWaiting {
		e.state, e.withheld = expectAsked, false
		close(e.settled)
	}
	return e.state != expectAsked
}

// wait waits until the body is wanted, which is nil. It fails at the end of the exchange, or of its context, and when the
// target does not end the header that it has begun: net/http's transport waits for the read before it returns. An
// error before that would take the response with it. ctx is the attempt's own: the request's ends a moment before those made
// of it, and a failure in between would look like the target's.
//
// Where nothing bounds that header the client is asked when the target has had its time to think about Expect: over
// HTTP/1 nothing but a read notices a client that leaves.
func (e *expectation) wait(ctx context.Context) error {
	late, stop := e.late()
	defer stop()
	received := e.received
	for {
		select {
		case <-e.settled:
			return e.verdict()
		case <-ctx.Done():
			return errNotWanted
		case <-received:
			late, received = nil, nil
		case <-late:
			if e.endless {
				e.settle(expectAsked)
				return e.verdict()
			}
			return errHeaderStalled
		}
	}
}

// late returns a channel that is ready when the time of the response's header is over, and what stops its timer.
func (e *expectation) late() (<-chan time.Time, func() bool) {
	timeout := e.timeout
	if e.endless {
		timeout = expectTimeout
	}
	if timeout == 0 {
		return nil, func() bool { return true }
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	timer := time.NewTimer(time.Until(e.begun.Add(timeout)))
	return timer.C, timer.Stop
}

func (e *expectation) verdict() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == expectAsked {
		return nil
	}
	return errNotWanted
}
