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
	bounded bool      // the last request has no body, and no other bound than HeaderTimeout
	since   time.Time // when the request was written; zero: a header section has come
	tail    []byte    // the last bytes that came
}

// tolerance is how much later than its bound a wait may end.
const tolerance = time.Second

// within returns how long a wait may last that is bounded by d, "to a quarter".
func within(d time.Duration) time.Duration { return d + d/4 + tolerance }

// Write measures that it ends within TargetWrite.
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

// isBodyless reports whether p is a whole request that has no body. The time of the response to one that has a body begins
// behind that, which the client may take long to send (upstream.Options.HeaderTimeout).
func isBodyless(p []byte) bool {
	if !bytes.HasSuffix(p, []byte("\r\n\r\n")) {
		return false
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p)))
	return err == nil && r.ContentLength == 0
}

// Read measures that the first header section, of an interim response perhaps, is there within HeaderTimeout.
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
