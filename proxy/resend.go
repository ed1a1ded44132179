package proxy

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
)

// errRefused is the error of an attempt whose target did not process the request, and said so (RFC 9113 section 8.7).
var errRefused = errors.New("the target refused the request unprocessed")

// resends ends an attempt whose transport would send a request without a body again and again: net/http's does, over one
// connection after the other and without a bound but the request's context, where a target of HTTP/2 refuses each (GOAWAY,
// REFUSED_STREAM). What a kept connection refuses may be sent over another one, as where a target of HTTP/1.1 has closed
// one that was kept too long. Further refusals are the proxy's to retry.
type resends struct {
	cancel context.CancelCauseFunc

	mu     sync.Mutex // the transport writes on a goroutine of its own
	sent   bool       // over the last of conns
	reused bool       // so was that one
	conns  []net.Conn
}

// gotConn is called before each time that the request is sent, on the goroutine of RoundTrip. It reports whether it may be.
func (s *resends) gotConn(info httptrace.GotConnInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent && (!s.reused || slices.Contains(s.conns, info.Conn)) {
		s.cancel(errRefused) // the transport looks before it writes
		return false
	}
	s.conns, s.reused, s.sent = append(s.conns, info.Conn), info.Reused, false
	return true
}

func (s *resends) wroteHeaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = true
}

// refused reports whether err is of a transport that does not send a refused request again: its body can't be had again, or
// it was the first of its connection, and the GOAWAY has an error. Only the text of these errors tells.
func refused(err error) bool {
	const prefix = "http2: Transport"
	text, ok := strings.CutPrefix(err.Error(), prefix)
	if !ok {
		return false
	}
	if text, ok = strings.CutPrefix(text, ": cannot retry err ["); !ok {
		return strings.HasPrefix(text, " received GOAWAY from server")
	}
	return strings.HasPrefix(text, prefix+" received Server's graceful shutdown GOAWAY]") ||
		strings.HasPrefix(text, "stream error: ") && strings.Contains(text, "; REFUSED_STREAM")
}
