package simulate

import (
	"bufio"
	"bytes"
	"net/http"
	"sync"
	"time"
)

// socket is the gateway's end of a connection to a target. It measures how long the gateway waits for the target.
type socket struct {
	*Conn
	gateway *gateway

	mu      sync.Mutex
	upgrade bool      // a tunnel's, which has bounds of its own
	bounded bool      // the last request has no body, and no timeout except HeaderTimeout
	since   time.Time // when the request was written; zero: a header section was received
	tail    []byte    // the last bytes received
}

// tolerance is how much later than its bound a wait may end.
const tolerance = time.Second

// within returns how long a wait with the timeout d may last: a quarter longer.
func within(d time.Duration) time.Duration { return d + d/4 + tolerance }

// Write checks that it ends within TargetWrite.
func (s *socket) Write(p []byte) (int, error) {
	start := time.Now()
	n, err := s.Conn.Write(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upgrade = s.upgrade || bytes.Contains(p, []byte("\r\nUpgrade: "))
	plan := &s.gateway.plan.Gateway
	if took := time.Since(start); !s.upgrade && took > within(plan.TargetWrite) {
		s.gateway.journal.Break("time", "a write to %v lasted %v, the group's WriteTimeout is %v", s.remote, took, plan.TargetWrite)
	}
	s.bounded = !s.upgrade && !plan.Transport && !plan.H2Targets && isBodyless(p)
	s.since = time.Now()
	return n, err
}

// isBodyless reports whether p is a whole request without a body. HeaderTimeout begins after a request's body, which the
// client may take long to send (upstream.Options.HeaderTimeout).
func isBodyless(p []byte) bool {
	if !bytes.HasSuffix(p, []byte("\r\n\r\n")) {
		return false
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p)))
	return err == nil && r.ContentLength == 0
}

// Read checks that the first header section, perhaps of an interim response, is received within HeaderTimeout.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	plan := &s.gateway.plan.Gateway
	if took := time.Since(s.since); s.bounded && !s.since.IsZero() && plan.HeaderTimeout > 0 && took > within(plan.HeaderTimeout) {
		s.gateway.journal.Break("time", "%v has not responded for %v, HeaderTimeout is %v", s.remote, took, plan.HeaderTimeout)
	}
	s.tail = append(s.tail, p[:n]...)
	if bytes.Contains(s.tail, []byte("\n\r\n")) || bytes.Contains(s.tail, []byte("\n\n")) { // a bare LF is tolerated
		s.since = time.Time{}
	}
	s.tail = append(s.tail[:0], s.tail[max(0, len(s.tail)-3):]...)
	return n, err
}
