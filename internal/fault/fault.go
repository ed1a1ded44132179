// Package fault holds the one error type of a proxied exchange. The packages
// proxy, wsupgrade and filters offer it under their own names.
package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Kind says what failed.
type Kind int

const (
	// Unknown is the zero Kind; nothing in culvert makes it.
	Unknown Kind = iota
	// ClientGone: the client went away before its answer was complete. It is
	// logged as 499, as nginx does, and never sent; it says nothing about the
	// target's health.
	ClientGone
	// BadRequest: the request can't be forwarded as it is.
	BadRequest
	// Forbidden: a policy refuses the request, a foreign Origin for instance.
	Forbidden
	// UpgradeRequired: the handshake speaks a version that is not spoken here.
	UpgradeRequired
	// Unsupported: nothing here speaks what the request asks for.
	Unsupported
	// BodyTooLarge: the request's body is over the limit.
	BodyTooLarge
	// BodyTooSlow: the request's body came to a halt.
	BodyTooSlow
	// NoTarget: no target is there to be asked: all are down or failing.
	NoTarget
	// Busy: no target may be asked for now: all have as many requests as they may
	// have, or the gateway drains.
	Busy
	// Dial: the connection to the target could not be made.
	Dial
	// Head: the target's answer had no valid head.
	Head
	// Handshake: the target's 101 is not a valid answer to the upgrade.
	Handshake
	// Timeout: the target did not answer in time.
	Timeout
	// Body: the target's body broke after its head was sent to the client.
	Body
	// Internal: the gateway itself has failed, the disk that holds a body for
	// instance, a hook or filter that made a request of which no valid one can be
	// written, or the system, which has no descriptor or local port left. It says nothing about the
	// target's health and is not retried on another.
	Internal
)

var kinds = [...]struct {
	name   string
	status int
}{
	Unknown:         {"unknown error", http.StatusBadGateway},
	ClientGone:      {"client gone", 499},
	BadRequest:      {"bad request", http.StatusBadRequest},
	Forbidden:       {"forbidden", http.StatusForbidden},
	UpgradeRequired: {"upgrade required", http.StatusUpgradeRequired},
	Unsupported:     {"not implemented", http.StatusNotImplemented},
	BodyTooLarge:    {"request body too large", http.StatusRequestEntityTooLarge},
	BodyTooSlow:     {"request body too slow", http.StatusRequestTimeout},
	NoTarget:        {"no target available", http.StatusServiceUnavailable},
	Busy:            {"busy", http.StatusServiceUnavailable},
	Dial:            {"dial failed", http.StatusBadGateway},
	Head:            {"invalid response head", http.StatusBadGateway},
	Handshake:       {"invalid upgrade response", http.StatusBadGateway},
	Timeout:         {"timeout", http.StatusGatewayTimeout},
	Body:            {"response body broken", http.StatusBadGateway},
	Internal:        {"internal error", http.StatusInternalServerError},
}

// String returns a short English name of k.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kinds[k].name
}

// Error says what failed in one exchange, against which target, and what had
// been sent by then.
type Error struct {
	// Kind says what failed.
	Kind Kind
	// Target is the address of the target, or the upstream's name where no
	// target was chosen; "" where the fault is the client's.
	Target string
	// Wrote says whether a byte of the request may have reached the target. If
	// it is false the request can be sent to another target safely.
	Wrote bool
	// HeadSent says whether a final head was sent to the client. If it is true
	// the exchange can only be aborted.
	HeadSent bool
	// RetryAfter is when the client may ask again, for Busy; 0 if nobody knows.
	RetryAfter time.Duration
	// Err is the cause.
	Err error
}

// Error returns the kind, the target and the cause.
func (e *Error) Error() string {
	s := e.Kind.String()
	if e.Target != "" {
		s += ": " + e.Target
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Status is the status that a client is answered with, or that is logged for
// it: 499 is for logs only and never sent.
func (e *Error) Status() int {
	if e.Kind < 0 || int(e.Kind) >= len(kinds) {
		return http.StatusBadGateway
	}
	return kinds[e.Kind].status
}

// ClientSide says whether the client, not the target, caused the failure. Such
// a failure never counts against a target's health.
func (e *Error) ClientSide() bool {
	switch e.Kind {
	case ClientGone, BadRequest, Forbidden, UpgradeRequired, Unsupported, BodyTooLarge, BodyTooSlow:
		return true
	}
	return false
}

// TargetSide says whether the target may have caused the failure, so that it counts
// against its health.
func (e *Error) TargetSide() bool { return !e.ClientSide() && e.Kind != Internal }

// Ended is the kind of a failure that comes from the end of a request's context:
// ClientGone, or Timeout where the cause is that its time is over.
func Ended(ctx context.Context) Kind {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return Timeout
	}
	return ClientGone
}

// As returns the first *Error in err's chain, or nil.
func As(err error) *Error {
	if err == nil {
		return nil // most often, and without an allocation
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
