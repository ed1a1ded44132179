package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// pings is how many pings a new connection has behind its settings.
const pings = 16

// session is a connection of HTTP/2 that shows each frame, which net/http's client would hide.
type session struct {
	conn    net.Conn
	scheme  string
	ended   chan struct{} // closed when nothing is read any more
	writing sync.Mutex    // guards framer's writing half, encoder and block
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer

	mu      sync.Mutex // guards what follows, and the streams
	changed sync.Cond
	streams map[uint32]*stream
	last    uint32
	credit  int64 // how much may be sent
	greeted int   // how many frames of greet the gateway has acknowledged
	goAway  bool  // the gateway accepts no further stream
	unread  bool  // no more of a response is accepted than the first window
	err     error // why the connection has ended
}

// stream is one exchange. Its fields are guarded by the session's mu.
type stream struct {
	s        *session
	id       uint32
	resp     response
	final    bool // the header section of the final response has arrived
	ended    bool // END_STREAM has arrived
	reset    bool
	code     http2.ErrCode
	problems []string
}

// session opens a connection whose streams have a window; nil where that fails.
//
// net/http's server ends a connection whose SETTINGS its loop has not seen after 2 seconds, which
// is not long on a machine with much else to do. Thus a connection counts as open once the
// server has acknowledged them, and is made anew where it ends before.
func (c *client) session(g *gateway, p protocol, window uint32) *session {
	for range 10 {
		conn := c.dial(g, p)
		if conn == nil {
			return nil
		}
		s := newSession(conn, p)
		err := s.greet(window)
		if err == nil {
			return s
		}
		_ = s.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.broke("a gateway accepts connections", "%s, %v: %v", g.name, p, err)
			return nil
		}
	}
	c.broke("a gateway accepts connections", "%s, %v: none of ten", g.name, p)
	return nil
}

func newSession(conn net.Conn, p protocol) *session {
	s := &session{conn: conn, scheme: "http", ended: make(chan struct{}), framer: http2.NewFramer(conn, conn), streams: map[uint32]*stream{}, credit: 65535}
	if p == h2 {
		s.scheme = "https"
	}
	s.changed.L = &s.mu
	s.encoder = hpack.NewEncoder(&s.block)
	s.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.framer.MaxHeaderListSize = 1 << 20
	return s
}

// greet sends the preface and waits until the server has acknowledged the settings, and some
// pings: the end of the 2 seconds may wait in its loop beside the settings, which takes either
// first. It starts the reading of frames.
func (s *session) greet(window uint32) error {
	_, err := io.WriteString(s.conn, http2.ClientPreface)
	if err == nil {
		err = s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}, http2.Setting{ID: http2.SettingEnablePush})
	}
	for range pings {
		if err == nil {
			err = s.framer.WritePing(false, [8]byte{})
		}
	}
	go s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	for err == nil && s.greeted < 1+pings {
		if err = s.err; err == nil {
			s.changed.Wait()
		}
	}
	return err
}

// Close closes the connection and waits until nothing reads from it.
func (s *session) Close() error {
	err := s.conn.Close()
	<-s.ended
	return err
}

func (s *session) reset() {
	reset(s.conn)
	<-s.ended
}

func (s *session) read() {
	defer close(s.ended)
	var err error
	for err == nil {
		var frame http2.Frame
		if frame, err = s.framer.ReadFrame(); err == nil {
			err = s.take(frame)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.changed.Broadcast()
}

func (s *session) write(f func() error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return f()
}

// take takes a frame in.
func (s *session) take(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return s.write(s.framer.WriteSettingsAck)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return s.write(func() error { return s.framer.WritePing(true, f.Data) })
		}
	case *http2.GoAwayFrame:
		if f.ErrCode != http2.ErrCodeNo {
			return fmt.Errorf("GOAWAY %v %q", f.ErrCode, f.DebugData())
		}
	case *http2.DataFrame:
		if n := uint32(f.Length); n > 0 {
			if err := s.write(func() error { return s.framer.WriteWindowUpdate(0, n) }); err != nil {
				return err
			}
			if !f.StreamEnded() && !s.isUnread() {
				if err := s.write(func() error { return s.framer.WriteWindowUpdate(f.StreamID, n) }); err != nil {
					return err
				}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	s.note(frame)
	return nil
}

func (s *session) isUnread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unread
}

// note changes the state that a frame changes.
func (s *session) note(frame http2.Frame) {
	id := frame.Header().StreamID
	st := s.streams[id]
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		s.greeted++
	case *http2.PingFrame:
		s.greeted++
	case *http2.GoAwayFrame:
		s.goAway = true
	case *http2.WindowUpdateFrame:
		if id == 0 {
			s.credit += int64(f.Increment)
		}
	case *http2.RSTStreamFrame:
		if st != nil {
			st.reset, st.code = true, f.ErrCode
		}
	case *http2.DataFrame:
		if st != nil {
			st.resp.body += string(f.Data())
			st.end(f.StreamEnded())
		}
	case *http2.MetaHeadersFrame:
		if st != nil {
			st.headers(f)
		}
	}
}

func (st *stream) end(end bool) {
	if st.ended {
		st.problems = append(st.problems, "a frame behind the end of the stream")
	}
	st.ended = st.ended || end
}

// headers takes a header section: an interim one, that of the response, or the trailers.
func (st *stream) headers(f *http2.MetaHeadersFrame) {
	part := section{header: http.Header{}}
	for _, field := range f.Fields {
		if field.Name == ":status" {
			part.status, _ = strconv.Atoi(field.Value)
			continue
		}
		part.header.Add(field.Name, field.Value)
	}
	switch {
	case st.final:
		st.resp.trailer = part.header
	case part.status < 200:
		st.resp.interim = append(st.resp.interim, part)
	default:
		st.resp.section, st.final = part, true
	}
	st.end(f.StreamEnded())
}

// open begins a request on a stream of its own.
func (s *session) open(q request, end bool) (*stream, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	st, err := s.newStream()
	if err != nil {
		return nil, err
	}
	fields := append([][2]string{{":method", q.method}, {":scheme", s.scheme}, {":authority", "gateway.test"}, {":path", q.path}}, q.header...)
	return st, s.writeFields(st.id, fields, end)
}

// begin opens a request and sends the beginning of its body.
func (s *session) begin(q request, body string, end bool) (*stream, error) {
	st, err := s.open(q, false)
	if err == nil {
		err = st.send(body, end)
	}
	return st, err
}

func (s *session) newStream() (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.goAway {
		return nil, errors.New("the gateway has sent a GOAWAY")
	}
	s.last += 2
	st := &stream{s: s, id: s.last - 1}
	s.streams[st.id] = st
	return st, nil
}

// writeFields writes a header section; writing is held.
func (s *session) writeFields(id uint32, fields [][2]string, end bool) error {
	s.block.Reset()
	for _, f := range fields {
		if err := s.encoder.WriteField(hpack.HeaderField{Name: lower(f[0]), Value: f[1]}); err != nil {
			return err
		}
	}
	return s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: s.block.Bytes(), EndStream: end, EndHeaders: true})
}

// lower is the name of a field in HTTP/2.
func lower(name string) string { return string(bytes.ToLower([]byte(name))) }

// send sends a piece of the request's body, at most 16 KiB. A stream gets no more than 64 KiB in
// all: its window is not looked at.
func (st *stream) send(data string, end bool) error {
	s := st.s
	s.mu.Lock()
	for s.credit < int64(len(data)) && s.err == nil {
		s.changed.Wait()
	}
	s.credit -= int64(len(data))
	s.mu.Unlock()
	return s.write(func() error { return s.framer.WriteData(st.id, end, []byte(data)) })
}

// finish ends the request with trailers.
func (st *stream) finish(trailer [][2]string) error {
	return st.s.write(func() error { return st.s.writeFields(st.id, trailer, true) })
}

// cancel resets the stream.
func (st *stream) cancel() error {
	return st.s.write(func() error { return st.s.framer.WriteRSTStream(st.id, http2.ErrCodeCancel) })
}

// await waits until done holds, the stream has been reset or the connection has ended.
func (st *stream) await(done func(*stream) bool) error {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case len(st.problems) > 0:
			return fmt.Errorf("%s", st.problems[0])
		case done(st):
			return nil
		case st.reset:
			return fmt.Errorf("RST_STREAM %v", st.code)
		case s.err != nil:
			return s.err
		}
		s.changed.Wait()
	}
}

func hasEnded(st *stream) bool { return st.ended }

// receive waits for the whole response.
func (st *stream) receive() (response, error) {
	err := st.await(hasEnded)
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.resp.closes = st.s.goAway
	return st.resp, err
}

func (s *session) exchange(q request) (response, error) {
	st, err := s.open(q, q.body == "" && len(q.trailer) == 0)
	if err == nil && q.body != "" {
		err = st.send(q.body, len(q.trailer) == 0)
	}
	if err == nil && len(q.trailer) > 0 {
		err = st.finish(q.trailer)
	}
	if err != nil {
		return response{}, err
	}
	return st.receive()
}
