package proxy

import (
	"errors"
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/internal/head"
)

var errNotWanted = errors.New("the target responded without asking for the body")

// expectation is a client's Expect: 100-continue. Reading its body makes
// net/http ask the client for it, and the transport reads it also where the
// target has refused it, only to keep the connection. Then the client would be
// asked for a body that the target does not want, so that read gets nothing, and
// the connection to the target ends with the exchange (RFC 9110 section 10.1.1).
type expectation struct {
	mu      sync.Mutex // guards state
	state   expectState
	settled chan struct{} // closed when state is asked or over
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
	return &expectation{settled: make(chan struct{})}
}

func expectsContinue(r *http.Request) bool { return head.HasToken(r.Header["Expect"], "100-continue") }

// firstByte is called when the target has begun to say something.
func (e *expectation) firstByte() {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.state == expectWaiting {
			e.state = expectAnswered
		}
	}
}

// settle ends the waiting: by a 1xx, or the end of the exchange.
func (e *expectation) settle(state expectState) {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.state < expectAsked {
			e.state = state
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
		e.state = expectAsked
		close(e.settled)
	}
	return e.state != expectAsked
}

// wait waits for settled, and reports whether the body is wanted. It returns false only at the end of the exchange:
// an error before it would take the response with it.
func (e *expectation) wait() (wanted bool) {
	<-e.settled
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state == expectAsked
}
