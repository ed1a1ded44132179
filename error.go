package culvert

import (
	"fmt"
	"net/http"
	"time"
)

// ErrorKind is what failed in an exchange.
type ErrorKind int

const (
	// Unknown is the zero ErrorKind. No package of culvert returns it.
	Unknown ErrorKind = iota
	// ClientGone: the client disconnected before its response was complete. The status 499
	// is for logs, as in nginx, and never sent. It does not count against the target.
	ClientGone
	// BadRequest: the request can't be forwarded as it is. Status 400.
	BadRequest
	// Forbidden: a policy refuses the request, for a foreign Origin for instance. Status 403.
	Forbidden
	// UpgradeRequired: the handshake names a version that is not supported. Status 426.
	UpgradeRequired
	// Unsupported: the method or protocol of the request is not supported. Status 501.
	Unsupported
	// BodyTooLarge: the body of the request exceeds the limit. Status 413.
	BodyTooLarge
	// BodyTooSlow: the body of the request was not received in time. Status 408.
	BodyTooSlow
	// NoTarget: no target is available: each one is down or unhealthy. Status 503.
	NoTarget
	// Busy: no target may be sent a request now: each one has as many as it may have, or the
	// gateway drains. Status 503.
	Busy
	// DialFailed: the connection to the target could not be made. Status 502.
	DialFailed
	// HeaderInvalid: the target's response had no valid header section. Status 502.
	HeaderInvalid
	// HandshakeFailed: the target's 101 is not a valid response to the upgrade. Status 502.
	HandshakeFailed
	// Timeout: the target did not respond in time. Status 504.
	Timeout
	// BodyBroken: the body of the target's response broke off after the client was sent its
	// header. The response is aborted; the status 502 is for logs.
	BodyBroken
	// Internal: the gateway itself failed: the disk that holds a body, a hook or filter that
	// made a request which can't be written, or the system, which has no descriptor or local
	// port left. It does not count against the target, and is not retried on another one.
	// Status 500.
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
	DialFailed:      {"dial failed", http.StatusBadGateway},
	HeaderInvalid:   {"invalid response header", http.StatusBadGateway},
	HandshakeFailed: {"invalid upgrade response", http.StatusBadGateway},
	Timeout:         {"timeout", http.StatusGatewayTimeout},
	BodyBroken:      {"response body broken", http.StatusBadGateway},
	Internal:        {"internal error", http.StatusInternalServerError},
}

// String returns a short English name of k.
func (k ErrorKind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kinds[k].name
}

// MarshalText returns the name that String returns, so that package slog's JSON and encoding/json write it, not a number.
// The error is always nil.
func (k ErrorKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Error is the failure of an exchange: what failed, against which target, and what had been
// sent by then. Find it in an error with errors.As. An Error that was returned is not changed
// any more.
type Error struct {
	// Kind is what failed.
	Kind ErrorKind
	// Target is the address of the target, or the name of the upstream where no target was
	// chosen. It is empty where the client is at fault.
	Target string
	// BytesSent reports whether a byte of the request may have reached the target. If it is
	// false, the request can be sent to another target, with any method.
	BytesSent bool
	// HeaderSent reports whether the client was sent a final header. If it is true, the
	// exchange can only be aborted.
	HeaderSent bool
	// RetryAfter is the time after which the client may retry, for Busy and NoTarget; 0 if it is unknown: this module's responses
	// of status 503 say one second then.
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

// Status returns the status of the response to the client, or the one to log where none can be
// sent: 499 for ClientGone, and 502 for BodyBroken.
func (e *Error) Status() int {
	if e.Kind < 0 || int(e.Kind) >= len(kinds) {
		return http.StatusBadGateway
	}
	return kinds[e.Kind].status
}

// ClientSide reports whether the client caused the failure. Such a failure does not count
// against a target.
func (e *Error) ClientSide() bool {
	switch e.Kind {
	case ClientGone, BadRequest, Forbidden, UpgradeRequired, Unsupported, BodyTooLarge, BodyTooSlow:
		return true
	}
	return false
}

// TargetSide reports whether the target may have caused the failure, so that it counts against
// it.
func (e *Error) TargetSide() bool { return !e.ClientSide() && e.Kind != Internal }
