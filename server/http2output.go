package server

import (
	"encoding/binary"
	"slices"

	"golang.org/x/net/http2"
)

// http2Output is the state of what golang.org/x/net writes to a connection. It writes whole frames, but for the bounds of
// its buffer, and one piece at a time.
type http2Output struct {
	payload   int    // bytes of a frame's payload that are sent as they are
	unchanged int    // bytes that were looked at, to be sent as they are
	partial   []byte // a frame that is held until all of it was written
	section   []byte // a header section that is held until it has ended, in the frame that it began with
	made      []byte // what is to be sent first
}

// Write sends the frames of b, some of them changed. After an error it may be called with what it has not sent. It is not
// safe for concurrent use.
func (c *http2Conn) Write(b []byte) (n int, err error) {
	for {
		if err := c.sendMade(); err != nil || n == len(b) {
			return n, err
		}
		if c.unchanged == 0 && len(c.partial) == 0 && c.section == nil {
			c.unchanged = c.lookAt(b[n:])
		}
		if c.unchanged == 0 {
			n += c.hold(b[n:])
			continue
		}
		sent, err := c.Conn.Write(b[n:min(len(b), n+c.unchanged)])
		n += sent
		c.unchanged -= sent
		if err != nil {
			return n, err
		}
	}
}

func (c *http2Conn) sendMade() error {
	for len(c.made) > 0 {
		sent, err := c.Conn.Write(c.made)
		c.made = c.made[sent:]
		if err != nil {
			return err
		}
	}
	c.made = nil
	return nil
}

// lookAt returns how much of b is sent as it is: up to a frame that is changed, or whose header is not whole.
func (c *http2Conn) lookAt(b []byte) (n int) {
	for {
		k := min(c.payload, len(b)-n)
		n += k
		c.payload -= k
		if len(b)-n < frameHeaderLen {
			return n
		}
		f := parseFrame(b[n:])
		if c.changes(f) {
			return n
		}
		c.passed(f)
		n += frameHeaderLen
		c.payload = f.length
	}
}

// hold takes what it returns the length of from b into partial, and handles the frame in it when that is whole.
func (c *http2Conn) hold(b []byte) (n int) {
	fill := func(size int) bool {
		k := min(max(size-len(c.partial), 0), len(b)-n)
		c.partial = append(c.partial, b[n:n+k]...)
		n += k
		return len(c.partial) >= size
	}
	if !fill(frameHeaderLen) {
		return n
	}
	f := parseFrame(c.partial)
	if !c.changes(f) { // or no more: what the client sends decides, too
		c.passed(f)
		c.payload = f.length - (len(c.partial) - frameHeaderLen)
		c.made = append(c.made, c.partial...)
		c.release()
		return n
	}
	if fill(frameHeaderLen + f.length) {
		c.change(f, c.partial[frameHeaderLen:])
		c.release()
	}
	return n
}

// release empties partial, and keeps no more memory for the next frame than one of control needs.
func (c *http2Conn) release() {
	if c.partial = c.partial[:0]; cap(c.partial) > maxKept {
		c.partial = nil
	}
}

// changes reports whether a frame may be sent in another way than golang.org/x/net has written it.
func (c *http2Conn) changes(f frame) bool {
	switch f.kind {
	case http2.FrameHeaders:
		return !f.flags.Has(http2.FlagHeadersEndHeaders) && c.maxFrame.Load() > defaultMaxFrame
	case http2.FrameContinuation:
		return c.section != nil
	case http2.FrameRSTStream:
		return c.awaitsHeader(f.stream)
	case http2.FrameSettings:
		return !f.flags.Has(http2.FlagSettingsAck)
	}
	return false
}

// passed follows a frame that is sent.
func (c *http2Conn) passed(f frame) {
	switch f.kind {
	case http2.FrameHeaders, http2.FrameData:
		c.sent(f)
	case http2.FrameRSTStream:
		c.takeStream(f.stream)
	case http2.FrameGoAway:
		c.goingAway.Store(true)
	}
}

// change makes what is sent for a frame.
func (c *http2Conn) change(f frame, payload []byte) {
	switch f.kind {
	case http2.FrameHeaders:
		c.passed(f)
		c.section = append([]byte(nil), c.partial...)
	case http2.FrameContinuation:
		c.section = append(c.section, payload...)
		if f.flags.Has(http2.FlagContinuationEndHeaders) {
			c.sendSection()
		}
	case http2.FrameRSTStream:
		c.reset(f.stream, http2.ErrCode(binary.BigEndian.Uint32(payload)))
	case http2.FrameSettings:
		for s := range slices.Chunk(payload, settingLen) {
			if s := parseSetting(s); s.ID == http2.SettingMaxConcurrentStreams {
				c.maxStreams.Store(s.Val)
			}
		}
		c.made = append(c.made, c.partial...)
	}
}

// reset makes what is sent for the RST_STREAM in partial. It is not sent behind a 400 that closes the stream (RFC 9113 section
// 5.1).
func (c *http2Conn) reset(id uint32, code http2.ErrCode) {
	s, open := c.takeStream(id)
	if open && !s.begun && code == http2.ErrCodeProtocol && !c.smallTable.Load() {
		c.made = appendFrame(c.made, frame{len(badRequest), http2.FrameHeaders,
			http2.FlagHeadersEndHeaders | http2.FlagHeadersEndStream, id})
		c.made = append(c.made, badRequest...)
		if s.ended {
			return
		}
	}
	c.made = append(c.made, c.partial...)
}

// maxKept is how many bytes of memory are kept for a frame that is held.
const maxKept = 128

// badRequest is a header section with ":status 400", which the static table has (RFC 7541 appendix A).
const badRequest = "\x8c"

// sendSection sends a header section that has ended, in frames as large as the client accepts.
func (c *http2Conn) sendSection() {
	f := parseFrame(c.section)
	rest := c.section[frameHeaderLen:]
	c.section = nil
	for {
		f.length = min(len(rest), int(c.maxFrame.Load()))
		if f.length == len(rest) {
			f.flags |= http2.FlagHeadersEndHeaders // the same bit in both kinds of frames
		}
		c.made = append(appendFrame(c.made, f), rest[:f.length]...)
		if rest = rest[f.length:]; len(rest) == 0 {
			return
		}
		f.kind, f.flags = http2.FrameContinuation, 0
	}
}
