package proxy

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/culvert-go/culvert/internal/head"
)

var errNotWanted = errors.New("the target answered without asking for the body")

// expectation is a client's Expect: 100-continue. Reading its body makes
// net/http ask the client for it, and the transport reads it also where the
// target has refused it, only to keep the connection. Then the client would be
// asked for a body that nobody wants, so that read gets nothing, and the
// connection to the target ends with the exchange (RFC 9110 section 10.1.1).
type expectation struct {
	answered atomic.Bool   // the target has begun to say something
	once     sync.Once     // closes interim
	interim  chan struct{} // closed by a 1xx, after which anything may follow
	over     chan struct{} // closed when the exchange has ended
}

func newExpectation(in *http.Request) *expectation {
	if !head.HasToken(in.Header["Expect"], "100-continue") {
		return nil
	}
	return &expectation{interim: make(chan struct{}), over: make(chan struct{})}
}

// firstByte is called when the target has begun to say something.
func (e *expectation) firstByte() {
	if e != nil {
		e.answered.Store(true)
	}
}

// gotInterim is called when a 1xx has come.
func (e *expectation) gotInterim() {
	if e != nil {
		e.once.Do(func() { close(e.interim) })
	}
}

// refused says whether the target has given its answer without a 1xx before it.
// It returns only at the end of the exchange then: an error before it would take
// the answer with it.
func (e *expectation) refused() bool {
	if e == nil || !e.answered.Load() {
		return false
	}
	select {
	case <-e.interim:
		return false
	default:
	}
	select {
	case <-e.interim:
		return false
	case <-e.over:
		return true
	}
}

// end is called when the exchange has ended.
func (e *expectation) end() {
	if e != nil {
		close(e.over)
	}
}
