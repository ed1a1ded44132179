//go:build !go1.27

package upstream

import (
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
)

const (
	frameHeaderLen  = 9
	windowUpdateLen = 4
	settingLen      = 6
	// unknownStream is never opened: net/http ignores a WINDOW_UPDATE of it.
	unknownStream = 1<<31 - 1
)

// windowGuard is a connection as net/http sees it, which follows the frames of both sides. It fails in place of a frame that opens a stream's window
// too far. A WINDOW_UPDATE of a stream that has ended, which net/http may know still, becomes that of an unknown stream. All
// other bytes are passed on as they are, without a copy, but for a frame's header that was received in parts.
type windowGuard struct {
	net.Conn
	windows *windows

	// Of the goroutine that reads.
	received frameReader
	held     []byte // the beginning of a header, not passed on yet
	ready    []byte // what is passed on first, for small reads
	failed   error  // of all further reads

	sent frameWriter // of the goroutine that writes: there is one at a time
}

func newWindowGuard(c net.Conn) *windowGuard {
	g := &windowGuard{Conn: c, windows: newWindows()}
	g.sent.skip = len(http2.ClientPreface)
	return g
}

// NetConn returns the connection that the guard is on.
func (g *windowGuard) NetConn() net.Conn { return g.Conn }

// Read implements net.Conn.
func (g *windowGuard) Read(b []byte) (int, error) {
	switch {
	case len(g.ready) > 0:
		n := copy(b, g.ready)
		g.ready = g.ready[n:]
		return n, nil
	case len(b) == 0:
		return 0, nil
	case len(b) < 2*frameHeaderLen: // net/http's reads are larger
		enough := make([]byte, 2*frameHeaderLen)
		n, err := g.readFrames(enough)
		g.ready = enough[copy(b, enough[:n]):n]
		return n - len(g.ready), err
	}
	return g.readFrames(b)
}

// readFrames is Read for a b that has room for a header.
func (g *windowGuard) readFrames(b []byte) (int, error) {
	for g.failed == nil {
		n := copy(b, g.held)
		read, err := g.Conn.Read(b[n:])
		n += read
		passed, overflow := g.received.follow(b[:n], g.windows)
		g.held = append(g.held[:0], b[passed:n]...)
		if g.failed = err; overflow != nil {
			g.failed = overflow
		}
		if passed > 0 {
			return passed, nil
		}
	}
	return 0, g.failed
}

// Write implements net.Conn.
func (g *windowGuard) Write(b []byte) (int, error) {
	g.sent.follow(b, g.windows)
	return g.Conn.Write(b)
}

func parseFrameHeader(b []byte) http2.FrameHeader {
	return http2.FrameHeader{
		Length:   uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		Type:     http2.FrameType(b[3]),
		Flags:    http2.Flags(b[4]),
		StreamID: binary.BigEndian.Uint32(b[5:]) &^ (1 << 31),
	}
}

// endsStream reports whether f is the last frame of its sender on its stream.
func endsStream(f http2.FrameHeader) bool {
	return (f.Type == http2.FrameHeaders || f.Type == http2.FrameData) && f.Flags.Has(http2.FlagDataEndStream)
}

// frameWriter follows the frames that net/http writes.
type frameWriter struct {
	skip   int // bytes that are no frame's header
	header [frameHeaderLen]byte
	have   int // bytes of header
}

func (p *frameWriter) follow(b []byte, w *windows) {
	for {
		n := min(p.skip, len(b))
		p.skip -= n
		b = b[n:]
		if len(b) == 0 {
			return
		}
		n = copy(p.header[p.have:], b)
		b = b[n:]
		if p.have += n; p.have < frameHeaderLen {
			return
		}
		f := parseFrameHeader(p.header[:])
		p.have, p.skip = 0, int(f.Length)
		w.sentFrame(f)
	}
}

// frameReader follows the frames of a target.
type frameReader struct {
	frame http2.FrameHeader
	left  int              // bytes of its payload
	field [settingLen]byte // a part of its payload that counts
	have  int              // bytes of field
	size  int              // of field; 0 where the payload does not count
}

// follow follows the frames of b. It returns how much of b can be passed on: not the beginning of a header, and nothing
// from a payload on that overflows a window.
func (p *frameReader) follow(b []byte, w *windows) (passed int, overflow error) {
	for passed < len(b) {
		rest := b[passed:]
		if p.left > 0 {
			n := min(p.left, len(rest))
			if err := p.payload(rest[:n], w); err != nil {
				return passed, err
			}
			p.left -= n
			passed += n
			continue
		}
		if len(rest) < frameHeaderLen {
			break
		}
		p.begin(rest[:frameHeaderLen], w)
		passed += frameHeaderLen
	}
	return passed, nil
}

// begin follows the header of a frame, which it may change.
func (p *frameReader) begin(header []byte, w *windows) {
	f := parseFrameHeader(header)
	p.frame, p.left, p.have, p.size = f, int(f.Length), 0, 0
	switch known := w.receivedFrame(f); {
	case f.Type == http2.FrameWindowUpdate && f.StreamID != 0 && !known:
		binary.BigEndian.PutUint32(header[5:], unknownStream)
	case f.Type == http2.FrameWindowUpdate && f.StreamID != 0 && f.Length == windowUpdateLen:
		p.size = windowUpdateLen
	case f.Type == http2.FrameSettings && !f.Flags.Has(http2.FlagSettingsAck):
		p.size = settingLen
	}
}

// payload follows a part of a frame's payload.
func (p *frameReader) payload(b []byte, w *windows) error {
	for p.size > 0 && len(b) > 0 {
		n := copy(p.field[p.have:p.size], b)
		b = b[n:]
		if p.have += n; p.have < p.size {
			return nil
		}
		p.have = 0
		if err := p.apply(w); err != nil {
			return err
		}
	}
	return nil
}

func (p *frameReader) apply(w *windows) error {
	if p.size == windowUpdateLen {
		return w.add(p.frame.StreamID, binary.BigEndian.Uint32(p.field[:])&^(1<<31))
	}
	if http2.SettingID(binary.BigEndian.Uint16(p.field[:])) == http2.SettingInitialWindowSize {
		return w.setInitial(binary.BigEndian.Uint32(p.field[2:]))
	}
	return nil
}
