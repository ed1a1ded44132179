package proxy

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/errs"
)

// errRefused is the error of an attempt whose target did not process the request, and said so (RFC 9113 section 8.7).
var errRefused = errors.New("the target refused the request unprocessed")

// errUnclear is the error of an attempt whose transport would send a request again that is not idempotent, and that its
// target has perhaps processed.
var errUnclear = errors.New("the target ended the request without a response, and has perhaps processed it")

// resends ends an attempt whose transport would send a request without a body again and again: net/http's does, over one
// connection after the other and without a bound but the request's context, where a target of HTTP/2 refuses each (GOAWAY,
// REFUSED_STREAM). What a kept connection refuses may be sent over another one, as where a target of HTTP/1.1 has closed
// one that was kept too long. Further refusals are the proxy's to retry.
//
// The transport sends again what was reset with PROTOCOL_ERROR, too, with any method (golang/go#47635), though the
// target may have processed it. That and GOAWAY are not told apart: both take the connection out of use. REFUSED_STREAM
// does not.
//
// An embedder's transport that sends a request again behind a response is left to its own rules.
//
// It keeps what the transport reports about its connections, also for a request with a body.
type resends struct {
	cancel     context.CancelCauseFunc // nil: the request has a body
	repeatable bool                    // the target may get the request twice

	mu        sync.Mutex // guards what follows: the transport calls on goroutines of its own
	conns     []net.Conn // nil where the request has a body
	connected time.Time  // when the transport had the last one; zero: it had none, or reports none
	reused    bool       // that one had been kept
	http2     bool       // it speaks HTTP/2; not known of a request that is repeatable
	sent      bool       // the header was sent over it
	responded bool       // the first byte of a response was received over it
	begun     bool       // so was that of the final one, as far as is known
}

// watch has trace call s for a request of an attempt that cancel ends.
func (s *resends) watch(trace *httptrace.ClientTrace, repeatable bool, cancel context.CancelCauseFunc) {
	s.cancel, s.repeatable = cancel, repeatable
	trace.WroteHeaders = s.wroteHeaders
	if !repeatable {
		trace.WroteHeaderField = s.wroteField
	}
}

// gotConn is called before each time that the request is sent, on the goroutine of RoundTrip where the request has no body. It
// reports whether it may be.
func (s *resends) gotConn(info httptrace.GotConnInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		if err := s.refusal(info.Conn); err != nil {
			s.cancel(err) // the transport looks before it writes
			return false
		}
		s.conns = append(s.conns, info.Conn)
	}
	s.connected, s.reused = time.Now(), info.Reused
	s.http2, s.sent, s.responded, s.begun = false, false, false, false
	return true
}

// refusal returns why the request may not be sent over next, or nil.
func (s *resends) refusal(next net.Conn) error {
	switch {
	case !s.sent || s.begun:
		return nil
	case next == s.conns[len(s.conns)-1]:
		return errRefused
	case s.http2 && !s.repeatable:
		return errUnclear
	case !s.reused || slices.Contains(s.conns, next):
		return errRefused
	}
	return nil
}

func (s *resends) wroteField(name string, _ []string) {
	if strings.HasPrefix(name, ":") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.http2 = true
	}
}

func (s *resends) wroteHeaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = len(s.conns) > 0
}

// gotByte notes that the target has begun what may be the final response. The transport may call before wroteHeaders.
func (s *resends) gotByte() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responded, s.begun = true, true
}

// gotInterim notes that what the target has begun is not the final response.
func (s *resends) gotInterim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = false
}

// stale reports whether the last connection had been kept, and no response has begun over it.
func (s *resends) stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused && !s.responded
}

// connectedAt returns when the transport had its last connection, zero where it reports none.
func (s *resends) connectedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected
}

// unclear reports whether the target has perhaps processed the request, though the transport has looked for another
// connection since.
func (s *resends) unclear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent && !s.begun && s.http2 && !s.repeatable
}

// streamReset reports whether err is that of one stream of HTTP/2: its connection is not broken off.
func streamReset(err error) bool {
	return strings.HasPrefix(strings.TrimPrefix(err.Error(), cannotRetry), "stream error: ")
}

// cannotRetry begins the error of net/http's transport for what it would send again if it had the body still.
const cannotRetry = "http2: Transport: cannot retry err ["

// refused reports whether err is of a transport that does not send a refused request again: its body can't be had again, or
// it was the first of its connection, and the GOAWAY has an error; or unsent, also over a connection that had ended unused. Only the text
// of these errors distinguishes them.
func refused(err error) bool {
	text, again := strings.CutPrefix(err.Error(), cannotRetry)
	if !again {
		return errors.Is(err, errRefused) || strings.HasPrefix(text, "http2: Transport received GOAWAY from server") || unsent(err) || errs.EndedUnused(err)
	}
	return strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY]") ||
		strings.HasPrefix(text, "stream error: ") && strings.Contains(text, "; REFUSED_STREAM")
}

// mostUnsent is how often a request is given to a transport again that has sent nothing of it. Each time other requests have used up
// a connection, or its target has ended it.
const mostUnsent = 10

// unsent reports whether err is of a transport that has sent nothing of a request, since its connection of HTTP/2 could not be used
// any more, and that has no other one: it takes the body, which it has closed, for one that it has read. The connection may have ended
// by the transport's own rules (upstream.Options.MaxConnRequests).
func unsent(err error) bool {
	return err.Error() == "net/http: cannot rewind body after connection loss"
}
