package simulate

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frameStream is a stream of a frameConn: the request's body is written to it, and the response's is read from it. It
// is a duplex, so that it may carry a tunnel.
type frameStream struct {
	conn *frameConn
	id   uint32

	// All below is guarded by conn.mu.
	window      int64 // that the server may still fill
	room        int64 // that the client may still fill
	status      int   // of the final response
	header      http.Header
	trailer     http.Header
	interim     []http.Header
	data        []byte    // not read
	ended       bool      // by the server
	endedAt     time.Time // the other side's half, by an end or a reset; zero: it has not ended
	sentEnd     bool      // by the client
	gone        bool      // by a RST_STREAM of the client
	reset       http2.ErrCode
	err         error // the stream has ended otherwise
	over        bool  // the deadline has passed
	timer       *time.Timer
	closed      chan struct{}
	expectation *expectation
	name        string // how its request is malformed, "" if it is not
}

// fail ends the stream. The caller holds conn.mu.
func (s *frameStream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.noteEnd()
	s.finish()
}

// takeEnd handles END_STREAM, if it is set. The caller holds conn.mu.
func (s *frameStream) takeEnd(there bool) {
	if there {
		s.ended = true
		s.noteEnd()
	}
}

// noteEnd records when the other side's half has ended. The caller holds conn.mu.
func (s *frameStream) noteEnd() {
	if s.endedAt.IsZero() {
		s.endedAt = time.Now()
	}
}

// finish closes s.closed. The caller holds conn.mu.
func (s *frameStream) finish() {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	see(s.expectation.responded)
	s.conn.changed.Broadcast()
}

// takeHeader handles an interim response, a final response or its trailers. The caller holds conn.mu.
func (s *frameStream) takeHeader(frame *http2.MetaHeadersFrame) {
	h := http.Header{}
	for _, field := range frame.RegularFields() {
		h.Add(field.Name, field.Value)
		if hopByHop(field) {
			s.conn.world.journal.Break("hop by hop", "%s: the response on stream %d has %v", s.conn.name, s.id, field)
		}
	}
	status, _ := strconv.Atoi(frame.PseudoValue("status"))
	switch {
	case s.err != nil:
	case s.status != 0:
		s.trailer = h
	case status >= 100 && status < 200:
		h.Set("Status", strconv.Itoa(status))
		s.interim = append(s.interim, h)
		if status == http.StatusContinue {
			see(s.expectation.continued)
		}
	default:
		s.status, s.header = status, h
		see(s.expectation.responded)
	}
	s.takeEnd(frame.StreamEnded())
}

// hopByHop reports whether a field must not be sent over HTTP/2 (RFC 9113 section 8.2.2).
func hopByHop(f hpack.HeaderField) bool {
	switch f.Name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return true
	}
	return f.Name != strings.ToLower(f.Name)
}

// response waits for the final response.
func (s *frameStream) response() error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.await(func() bool { return s.status != 0 })
}

// await waits until holds reports true, the stream ends or the deadline passes. The caller holds conn.mu.
func (s *frameStream) await(holds func() bool) error {
	for {
		switch {
		case s.gone:
			return net.ErrClosed
		case holds():
			return nil
		case s.err != nil:
			return s.err
		case s.over:
			return os.ErrDeadlineExceeded
		}
		s.conn.changed.Wait()
	}
}

// Read returns what was received of the body, and opens the window if it is closed.
func (s *frameStream) Read(p []byte) (int, error) {
	f := s.conn
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(s.data) == 0 && !s.ended && s.err == nil && s.sure() <= 0 && !s.over && !s.gone {
		f.mu.Unlock()
		f.world.sleep(f.plan.Late)
		f.mu.Lock()
		if s.sure() <= 0 && !s.ended && s.err == nil && !s.gone {
			n := int64(f.plan.Step) - s.sure()
			s.window += n
			_ = f.framer.WriteWindowUpdate(s.id, uint32(n))
		}
	}
	if err := s.await(func() bool { return len(s.data) > 0 || s.ended || s.sure() <= 0 && s.err == nil && !s.over }); err != nil {
		return 0, err
	}
	if len(s.data) == 0 && s.ended {
		return 0, io.EOF
	}
	n := copy(p, s.data)
	s.data = s.data[n:]
	return n, nil
}

// sure returns how much of the window the other side has for certain: until it has acknowledged SETTINGS that shrink it, it
// may use the larger one. net/http acknowledges two that arrive at once with one frame. The caller holds conn.mu.
func (s *frameStream) sure() int64 {
	sure := s.window
	for _, delta := range s.conn.pending {
		sure += delta
	}
	return sure
}

// Write sends p as far as the windows permit, and waits for the rest.
func (s *frameStream) Write(p []byte) (sent int, err error) {
	f := s.conn
	f.mu.Lock()
	defer f.mu.Unlock()
	pad := int64(f.plan.Padding)
	for sent < len(p) {
		overhead := int64(0)
		if pad > 0 {
			overhead = pad + 1
		}
		if err := s.await(func() bool { return s.err == nil && s.room > overhead && f.room > overhead || s.sentEnd }); err != nil {
			return sent, err
		}
		if s.sentEnd {
			return sent, net.ErrClosed
		}
		n := min(int64(len(p)-sent), s.room-overhead, f.room-overhead, 16<<10-overhead)
		piece := p[sent : sent+int(n)]
		if pad > 0 {
			_ = f.framer.WriteDataPadded(s.id, false, piece, make([]byte, pad))
		} else {
			_ = f.framer.WriteData(s.id, false, piece)
		}
		s.room -= n + overhead
		f.room -= n + overhead
		sent += int(n)
	}
	return sent, nil
}

// CloseWrite ends the request.
func (s *frameStream) CloseWrite() error { return s.end(nil) }

// end ends the request, with the plan's trailers if it has some.
func (s *frameStream) end(trailer [][2]string) error {
	f := s.conn
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.err != nil || s.gone || s.sentEnd {
		return s.err
	}
	s.sentEnd = true
	if len(trailer) == 0 {
		return f.framer.WriteData(s.id, true, nil)
	}
	var fields []hpack.HeaderField
	for _, t := range trailer {
		fields = append(fields, hpack.HeaderField{Name: strings.ToLower(t[0]), Value: t[1]})
	}
	f.writeHeader(s.id, fields, true)
	return nil
}

// Close resets the stream if it has not ended.
func (s *frameStream) Close() error {
	s.resetWith(http2.ErrCodeCancel)
	return nil
}

// Reset resets the stream.
func (s *frameStream) Reset() { s.resetWith(http2.ErrCodeCancel) }

// resetWith resets the stream if it has not ended, and reports whether it sent a RST_STREAM.
func (s *frameStream) resetWith(code http2.ErrCode) (sent bool) {
	f := s.conn
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if !s.gone && s.err == nil && !(s.ended && s.sentEnd) {
		sent = f.framer.WriteRSTStream(s.id, code) == nil
	}
	s.gone = true
	s.finish()
	return sent
}

// Closed is closed when the stream has ended, by either side.
func (s *frameStream) Closed() <-chan struct{} { return s.closed }

// SetDeadline makes reads and writes fail from t on; the zero time removes the deadline.
func (s *frameStream) SetDeadline(t time.Time) error {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.over = false
	if !t.IsZero() {
		s.timer = time.AfterFunc(time.Until(t), func() {
			s.conn.mu.Lock()
			defer s.conn.mu.Unlock()
			s.over = true
			s.conn.changed.Broadcast()
		})
	}
	return nil
}

// SetReadDeadline and SetWriteDeadline are SetDeadline.
func (s *frameStream) SetReadDeadline(t time.Time) error  { return s.SetDeadline(t) }
func (s *frameStream) SetWriteDeadline(t time.Time) error { return s.SetDeadline(t) }

// LocalAddr and RemoteAddr return the addresses of the connection.
func (s *frameStream) LocalAddr() net.Addr  { return s.conn.conn.LocalAddr() }
func (s *frameStream) RemoteAddr() net.Addr { return s.conn.conn.RemoteAddr() }

// String names the stream.
func (s *frameStream) String() string { return fmt.Sprintf("stream %d", s.id) }
