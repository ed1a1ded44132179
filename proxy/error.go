package proxy

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Error says what failed in an exchange, against which target, and what had
// been sent by then. Find it with errors.As; Status gives the status to answer
// with. Its fields are Kind, Target, Wrote, HeadSent, RetryAfter and Err.
type Error = fault.Error

// Kind says what failed.
type Kind = fault.Kind

// The kinds of failure, with the status that each maps to.
const (
	ClientGone      = fault.ClientGone      // 499, logged and never sent
	BadRequest      = fault.BadRequest      // 400
	Forbidden       = fault.Forbidden       // 403
	UpgradeRequired = fault.UpgradeRequired // 426
	Unsupported     = fault.Unsupported     // 501
	BodyTooLarge    = fault.BodyTooLarge    // 413
	BodyTooSlow     = fault.BodyTooSlow     // 408
	NoTarget        = fault.NoTarget        // 503
	Busy            = fault.Busy            // 503, with RetryAfter
	DialFailed      = fault.Dial            // 502
	HeadInvalid     = fault.Head            // 502
	HandshakeFailed = fault.Handshake       // 502
	Timeout         = fault.Timeout         // 504
	BodyBroken      = fault.Body            // none: the answer is aborted
	Internal        = fault.Internal        // 500
)

// unread is what the client may have left to send of its request, behind a failure.
type unread int

const (
	nothingUnread unread = iota // the body has ended
	restUnread                  // what is left of it can be read
	brokenUnread                // a read of it has failed
)

// unreadOf returns what is left of a body that no attempt has read.
func unreadOf(r *http.Request) unread {
	if clientbody.Remains(r) {
		return restUnread
	}
	return nothingUnread
}

// fail reports the failure and ends the response.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, left unread, err *Error) {
	if p.o.OnError != nil {
		p.o.OnError(r, err)
	}
	if err.HeadSent || err.Kind == ClientGone {
		panic(http.ErrAbortHandler)
	}
	if err.Kind == BodyTooSlow { // also where wsupgrade has read it
		left = max(left, brokenUnread)
	}
	switch {
	case left == restUnread, left == brokenUnread && err.TargetSide():
		// A small rest is read: the connection is kept, and not reset under the response, as one is with bytes that
		// were not read.
		clientbody.LeaveUnread(w, r)
	case left == brokenUnread:
		// Behind a broken body it is unknown where the next request begins. And
		// net/http would wait for the rest of it, which may never come. Behind a whole one
		// net/http reads to notice a client that leaves: were that read to fail, the
		// request would be cancelled.
		if r.ProtoMajor == 1 { // for HTTP/2 it would end all streams of the connection
			w.Header().Set("Connection", "close")
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}
	bounded := deadline.Bound(w, r, p.o.WriteTimeout)
	p.o.ErrorHandler(bounded.Writer(), r, err)
	bounded.LeaveWritten()
}

// writeError is the default ErrorHandler.
func writeError(w http.ResponseWriter, _ *http.Request, err *Error) {
	wsupgrade.Refuse(w, err)
}
