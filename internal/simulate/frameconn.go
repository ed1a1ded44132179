package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frameConn is a connection of HTTP/2, of a client or a target, that reads and writes frames itself, so that the plan decides on
// windows, resets and settings. Its writes never wait: its link has an endless window.
type frameConn struct {
	world *world
	name  string
	plan  *FramesPlan
	conn  duplex

	mu      sync.Mutex // guards all fields below
	changed sync.Cond
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	streams map[uint32]*frameStream
	next    uint32 // stream

	window  int64 // that the server may still fill, of the connection
	granted int64 // that of a new stream
	pending []int64
	room    int64     // that the client may still fill, of the connection
	initial int64     // of a new stream
	connect bool      // the server accepts extended CONNECT requests
	ready   bool      // its settings were received
	err     error     // the connection has ended
	refused bool      // by a GOAWAY: no further streams
	heard   time.Time // when the last frame was received, except belated ones
	spoilt  bool      // the server ends the connection for a header section of the client's
	read    chan struct{}

	accept func(*frameStream, *http2.MetaHeadersFrame) // is called with each request; nil: this is a client
	newest uint32                                      // the last stream that was accepted
	last   uint32                                      // the last one that is accepted, if refused
	bad    []*frameStream                              // of a client's malformed requests
}

// takeRequest handles the header section of a request, or its trailers. The caller holds f.mu.
func (f *frameConn) takeRequest(s *frameStream, frame *http2.MetaHeadersFrame) {
	if s != nil {
		s.trailer = http.Header{}
		for _, field := range frame.RegularFields() {
			s.trailer.Add(field.Name, field.Value)
		}
		s.takeEnd(frame.StreamEnded())
		return
	}
	if f.refused && frame.StreamID > f.last {
		return
	}
	s = f.newStream(frame.StreamID)
	s.takeEnd(frame.StreamEnded())
	f.newest = s.id
	f.accept(s, frame)
}

// newFrameConn begins HTTP/2 on conn, as a client.
func newFrameConn(w *world, name string, plan *FramesPlan, conn duplex) *frameConn {
	f := makeFrameConn(w, name, plan, conn)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f.start(http2.Setting{ID: http2.SettingHeaderTableSize, Val: plan.Table}, http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	return f
}

// initialTable is the size of the header compression's table before the other end has accepted another one.
const initialTable = 4096

// makeFrameConn returns a connection on which nothing was sent yet.
func makeFrameConn(w *world, name string, plan *FramesPlan, conn duplex) *frameConn {
	f := &frameConn{world: w, name: name, plan: plan, conn: conn, streams: map[uint32]*frameStream{}, next: 1,
		window: 65535, granted: 65535, room: 65535, initial: 65535, read: make(chan struct{})}
	f.changed.L = &f.mu
	f.framer = http2.NewFramer(conn, conn)
	f.framer.ReadMetaHeaders = hpack.NewDecoder(initialTable, nil)
	f.framer.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(max(initialTable, plan.Table))
	f.framer.MaxHeaderListSize = 1 << 20
	f.encoder = hpack.NewEncoder(&f.block)
	_ = conn.SetReadDeadline(time.Now().Add(2 * w.longest)) // a link may be silent
	return f
}

// start sends the first settings, and reads from then on.
func (f *frameConn) start(settings ...http2.Setting) {
	f.mu.Lock()
	f.settings(f.plan.Window, settings...)
	f.mu.Unlock()
	go f.readFrames()
}

// settings sends the size of the streams' windows, and more. The caller holds f.mu.
func (f *frameConn) settings(window uint32, more ...http2.Setting) {
	_ = f.framer.WriteSettings(append(more, http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})...)
	delta := int64(window) - f.granted
	f.granted = int64(window)
	if delta < 0 { // the server may use the larger window until it has seen this
		f.pending = append(f.pending, delta)
		f.changed.Broadcast()
		return
	}
	f.pending = append(f.pending, 0)
	f.widen(delta)
}

// widen changes the windows of all streams. The caller holds f.mu.
func (f *frameConn) widen(delta int64) {
	for _, s := range f.streams {
		s.window += delta
	}
	f.changed.Broadcast()
}

// close closes the connection and waits for its reader.
func (f *frameConn) close() {
	f.conn.Close()
	<-f.read
}

// waitReady waits for the server's settings, and returns the error of a connection that ends before.
func (f *frameConn) waitReady() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.ready && f.err == nil {
		f.changed.Wait()
	}
	return f.err
}

// readFrames reads until the connection ends.
func (f *frameConn) readFrames() {
	defer close(f.read)
	for {
		frame, err := f.framer.ReadFrame()
		f.mu.Lock()
		var stream http2.StreamError
		switch {
		case errors.As(err, &stream):
			f.world.journal.Break("frames", "%s cannot read a header: %v", f.name, err)
		case err != nil:
			f.fail(err)
			f.mu.Unlock()
			return
		default:
			f.handle(frame)
			if !f.belated(frame) {
				f.heard = time.Now()
			}
		}
		f.changed.Broadcast()
		f.mu.Unlock()
	}
}

// fail ends all streams. The caller holds f.mu.
func (f *frameConn) fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // not io.EOF, which is the clean end of a stream
	}
	f.err = err
	for _, s := range f.streams {
		s.fail(err)
	}
	f.changed.Broadcast()
}

// handle handles one frame. The caller holds f.mu.
func (f *frameConn) handle(frame http2.Frame) {
	s := f.streams[frame.Header().StreamID]
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		f.handleSettings(frame)
	case *http2.PingFrame:
		if !frame.IsAck() {
			_ = f.framer.WritePing(true, frame.Data)
		}
	case *http2.GoAwayFrame:
		f.refused = true
		f.unasked(frame)
		f.world.journal.Note(f.name, "GOAWAY %v behind stream %d", frame.ErrCode, frame.LastStreamID)
		for id, s := range f.streams {
			if id > frame.LastStreamID {
				s.fail(fmt.Errorf("GOAWAY %v", frame.ErrCode))
			}
		}
	case *http2.WindowUpdateFrame:
		if frame.StreamID == 0 {
			f.room += int64(frame.Increment)
		} else if s != nil {
			s.room += int64(frame.Increment)
		}
	case *http2.RSTStreamFrame:
		if s != nil {
			s.reset = frame.ErrCode
			s.fail(http2.StreamError{StreamID: frame.StreamID, Code: frame.ErrCode})
		}
	case *http2.MetaHeadersFrame:
		if f.accept != nil {
			f.takeRequest(s, frame)
		} else if s != nil {
			s.takeHeader(frame)
		}
	case *http2.DataFrame:
		f.takeData(s, frame)
	}
}

// handleSettings handles the server's settings, or its acknowledgement of the client's. The caller holds f.mu.
func (f *frameConn) handleSettings(frame *http2.SettingsFrame) {
	if frame.IsAck() {
		f.framer.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(f.plan.Table) // it is in the first settings
		if len(f.pending) > 0 {
			f.widen(f.pending[0])
			f.pending = f.pending[1:]
		}
		return
	}
	if v, ok := frame.Value(http2.SettingInitialWindowSize); ok {
		for _, s := range f.streams {
			s.room += int64(v) - f.initial
		}
		f.initial = int64(v)
	}
	if v, ok := frame.Value(http2.SettingEnableConnectProtocol); ok {
		f.connect = v == 1
	}
	f.ready = true
	_ = f.framer.WriteSettingsAck()
}

// takeData handles a DATA frame. The caller holds f.mu.
func (f *frameConn) takeData(s *frameStream, frame *http2.DataFrame) {
	n := int64(frame.Length)
	if f.window -= n; f.window < 0 && n > 0 {
		f.world.journal.Break("frames", "%s: the connection's window is %d after %d bytes of stream %d", f.name, f.window, n, frame.StreamID)
	}
	f.openConnection()
	if s == nil {
		return
	}
	if s.window -= n; s.window < 0 && n > 0 {
		f.world.journal.Break("frames", "%s: the window of stream %d is %d after %d bytes", f.name, frame.StreamID, s.window, n)
	}
	if s.err == nil {
		s.data = append(s.data, frame.Data()...)
		s.takeEnd(frame.StreamEnded())
	}
}

// openConnection opens the connection's window, at once or when it is nearly closed. The caller holds f.mu.
func (f *frameConn) openConnection() {
	const full, low = 65535, 1000
	if !f.plan.Stingy {
		if n := full - f.window; n > 0 {
			f.window += n
			_ = f.framer.WriteWindowUpdate(0, uint32(n))
		}
		return
	}
	if f.window >= low {
		return
	}
	time.AfterFunc(f.plan.Late, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := full - f.window; n > full-low {
			f.window += n
			_ = f.framer.WriteWindowUpdate(0, uint32(n))
		}
	})
}

// open sends the header of a request and returns its stream, nil if the connection accepts none.
func (f *frameConn) open(fields []hpack.HeaderField, end bool) *frameStream {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.refused {
		return nil
	}
	s := f.newStream(f.next)
	s.sentEnd = end
	f.next += 2
	f.writeHeader(s.id, fields, end)
	return s
}

// newStream adds a stream. The caller holds f.mu.
func (f *frameConn) newStream(id uint32) *frameStream {
	s := &frameStream{conn: f, id: id, window: f.granted, room: f.initial, closed: make(chan struct{}), expectation: newExpectation(), header: http.Header{}}
	for _, delta := range f.pending { // a window that shrinks may not be known to the other side yet
		s.window -= delta
	}
	f.streams[id] = s
	return s
}

// writeHeader writes a header section in the frames that the plan splits it into. The caller holds f.mu.
func (f *frameConn) writeHeader(id uint32, fields []hpack.HeaderField, end bool) {
	f.block.Reset()
	bad := badField{}
	for _, field := range fields {
		_ = f.encoder.WriteField(field)
		bad.look(field, f.block.Len())
	}
	block := f.block.Bytes()
	size := f.plan.Split
	if size == 0 {
		size = 16 << 10
	}
	f.spoilt = f.spoilt || bad.continued(len(block), size)
	first := block[:min(size, len(block))]
	block = block[len(first):]
	_ = f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: end, EndHeaders: len(block) == 0})
	for len(block) > 0 {
		piece := block[:min(size, len(block))]
		block = block[len(piece):]
		_ = f.framer.WriteContinuation(id, len(block) == 0, piece)
	}
}
