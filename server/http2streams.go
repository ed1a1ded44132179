package server

import (
	"slices"

	"golang.org/x/net/http2"
)

// stream is what is followed of an open stream.
type stream struct {
	id    uint32
	begun bool // a header was sent, or golang.org/x/net resets it for another reason than that its request is malformed
	ended bool // the client has sent END_STREAM
}

// opened notes that the client has begun a header section, which opens a stream unless it is that of the trailers.
func (c *http2Conn) opened(id uint32) {
	if id <= c.lastStream {
		return
	}
	c.lastStream = id
	if c.goingAway.Load() {
		return
	}
	c.streamsMu.Lock()
	defer c.streamsMu.Unlock()
	if n := len(c.streams); n < maxOpen {
		tooMany := uint32(n) >= c.maxStreams.Load()
		c.streams = append(c.streams, stream{id: id, begun: tooMany})
	}
}

// received follows a frame of the client's that may end its side of a stream.
func (c *http2Conn) received(f frame) {
	if f.flags.Has(http2.FlagDataEndStream) { // the same bit in HEADERS
		c.update(f.stream, func(s *stream) bool { s.ended = true; return true })
	}
}

// sent follows a frame of the server's that begins a response, or may end it. The stream of which the client's side has ended,
// too, is closed. Otherwise golang.org/x/net resets it.
func (c *http2Conn) sent(f frame) {
	end := f.flags.Has(http2.FlagDataEndStream)
	if end || f.kind == http2.FrameHeaders {
		c.update(f.stream, func(s *stream) bool { s.begun = true; return !end || !s.ended })
	}
}

// setBegun notes that a stream is not to get a 400.
func (c *http2Conn) setBegun(id uint32) {
	c.update(id, func(s *stream) bool { s.begun = true; return true })
}

// awaitsHeader reports whether a stream is open, and may get a 400.
func (c *http2Conn) awaitsHeader(id uint32) (awaits bool) {
	c.update(id, func(s *stream) bool { awaits = !s.begun; return true })
	return awaits
}

// takeStream forgets a stream, which is closed, and returns what it was; not ok if it was not open.
func (c *http2Conn) takeStream(id uint32) (taken stream, ok bool) {
	c.update(id, func(s *stream) bool { taken, ok = *s, true; return false })
	return taken, ok
}

// update changes an open stream, which is forgotten if change reports false.
func (c *http2Conn) update(id uint32, change func(*stream) bool) {
	c.streamsMu.Lock()
	defer c.streamsMu.Unlock()
	i := slices.IndexFunc(c.streams, func(s stream) bool { return s.id == id })
	if i >= 0 && !change(&c.streams[i]) {
		last := len(c.streams) - 1
		c.streams[i] = c.streams[last]
		c.streams = c.streams[:last]
	}
}
