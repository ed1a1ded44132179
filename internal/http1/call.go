package http1

import (
	"errors"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// Call is one exchange: a request, over a connection of a Pool, and its response. Its user sets the exported fields,
// calls Prepare, then Pool.Do, and at last Release or Close. It is used once.
type Call struct {
	// Request is sent as http.Transport would send it, over the connections to the target that Options.Addr returns.
	// Its Body is nil if there is none, and is not closed. Once its context has ended, Do and reads of the
	// response's body fail.
	Request *http.Request
	// Header is the empty map that the header of the response is read into; nil means a new one.
	Header http.Header
	// Memory is for the values of Header and for Received, if they fit; nil for none.
	Memory []string
	// Names spell and order the fields of Request; Host, Content-Length, Transfer-Encoding, Trailer and Connection among them
	// are the places of what Do writes for these. nil means http.Transport's names and order.
	Names fieldnames.List
	// KeepNames has Received filled.
	KeepNames bool
	// Received are the names of the response's fields as the target has spelt them.
	Received fieldnames.List
	// Status is the code of the status line, a blank and the reason, if KeepNames is set.
	Status string
	// Separate makes Do send the header before it reads any of the body. Otherwise a body that is small, and whose
	// length is known, is read first: it is sent in one piece with the header, and needs no goroutine.
	Separate bool
	// Repeatable reports whether a target may receive the request twice; nil means that it may not. Do calls it after a kept
	// connection has ended under a request without a body: the target may have closed it when the request was sent
	// (RFC 9112 section 9.3.1).
	Repeatable func(*http.Request) bool
	// BodyTimeout bounds each read of the response's body, to a quarter; 0 means no bound.
	BodyTimeout time.Duration
	// Hooks is called in the course of the exchange; nil means that nothing is.
	Hooks Hooks

	pool    *Pool
	framing requestFraming
	buf     []byte // the memory of sent; nil when it is the upload's, or was given back
	sent    []byte // the request's header, with the body behind it if that is sent in one piece with it
	inline  int    // how much of sent is the body
	closes  bool   // sent announces that the connection ends

	conn       *Conn
	unwatch    func() bool // nil: the end of the context interrupts nothing
	upload     *upload     // nil: the body is sent with the header, or there is none
	late       bool        // send has waited for the response as long as patience permits
	began      bool        // the first byte of a response was received
	headerEnds time.Time   // when the response's header must have been received; zero: not settled yet

	sentBefore, receivedBefore int64 // over the connection
	sentBytes, receivedBytes   int64 // over one that was given back

	received header
	ends     framing
	body     Body
	resp     http.Response
}

// Hooks is called in the course of a Call, on Do's goroutine where nothing else is said. A panic of a hook on that
// goroutine is one of Do, which closes the connection.
type Hooks interface {
	// Connected is called when the Call has a connection. It is called once more for a second one.
	Connected()
	// Dialling is called before a goroutine starts that may hold the request's context when the Call has ended.
	Dialling()
	// Streaming is called before a goroutine starts that reads Request.Body. It may still do so when the Call has
	// ended, until BodyDone.
	Streaming()
	// Withheld is called when the header was sent, and the body is held back until the target requests it
	// (Expect: 100-continue) or has had some time to refuse it. The goroutine is that of Streaming.
	Withheld()
	// BodyDone is called when that goroutine reads no more of Request.Body.
	BodyDone()
	// FirstByte is called when the first byte of a response was received, of an interim one perhaps.
	FirstByte()
	// Interim is called with each interim response. The header is the callee's.
	Interim(status int, header http.Header)
}

// noHooks are the hooks of a Call without any.
type noHooks struct{}

func (noHooks) Connected()               {}
func (noHooks) Dialling()                {}
func (noHooks) Streaming()               {}
func (noHooks) Withheld()                {}
func (noHooks) BodyDone()                {}
func (noHooks) FirstByte()               {}
func (noHooks) Interim(int, http.Header) {}

// Errors of the bodies of requests.
var (
	// ErrNotWanted is what the body of a Call fails with where the response refuses it. That is no failure of the Call.
	ErrNotWanted = errors.New("the target responded without asking for the body")
	// ErrBodyLength is the error of a body that is shorter or longer than its Content-Length.
	ErrBodyLength = errors.New("the body is not as long as it was said to be")
)

// Error is the failure of a Call.
type Error struct {
	// Stale reports whether the connection was a kept one, on which no response has begun: the target may have closed
	// it for its age, as the request was sent.
	Stale bool
	// Err is the cause: of a connection that could not be made, the error of Options.Dial.
	Err error
}

// Error returns the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
