package proxy

import (
	"net/http"

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

// fail reports the failure and ends the response.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, left unread, err *Error) {
	if err.Kind == BodyTooSlow { // also where wsupgrade has read it
		left = max(left, brokenUnread)
	}
	p.report(w, r, left, err)
	left.leave(w, r, err)
	bounded := deadline.Bound(w, r, p.o.WriteTimeout)
	p.o.ErrorHandler(bounded.Writer(), r, err)
	bounded.LeaveWritten()
}

// report calls OnError, and aborts the response where nothing more can be sent.
func (p *Proxy) report(w http.ResponseWriter, r *http.Request, left unread, err *Error) {
	returned := err.HeadSent // which is cut off
	if left == restUnread {  // not cut off yet
		defer clientbody.LeavePanicked(w, r, &returned)
	}
	if p.o.OnError != nil {
		p.o.OnError(r, err)
	}
	if err.HeadSent || err.Kind == ClientGone {
		panic(http.ErrAbortHandler)
	}
	returned = true
}

// writeError is the default ErrorHandler.
func writeError(w http.ResponseWriter, _ *http.Request, err *Error) {
	wsupgrade.Refuse(w, err)
}
