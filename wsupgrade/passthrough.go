package wsupgrade

import (
	"bytes"
	"io"
)

// passthroughCodec is the codec of frames without an Observer: they are passed on unchanged. Only
// the Pongs to our own pings are taken out.
type passthroughCodec struct {
	boundary
	pending *pendingPing // nil: none of our pings awaits its Pong
}

// pendingPing is a ping of our own that awaits its Pong.
type pendingPing struct {
	payload []byte // of the latest ping
	held    []byte // of a frame that may be the Pong
}

func (c *passthroughCodec) onlyPongs(p []byte) bool { return c.boundary.onlyPongs(p) }
func (c *passthroughCodec) closeReceived() bool     { return c.boundary.closeBegun }
func (c *passthroughCodec) closeSent() bool         { return c.boundary.closeBegun }
func (c *passthroughCodec) discard(p []byte)        { c.follow(p) }

// expectPong keeps what is held: it may be of a frame that has to be passed on.
func (c *passthroughCodec) expectPong(payload []byte) {
	if c.pending == nil {
		c.pending = new(pendingPing)
	}
	c.pending.payload = payload
}

func (c *passthroughCodec) atBoundary() bool {
	return c.boundary.atBoundary() && (c.pending == nil || len(c.pending.held) == 0)
}

func (c *passthroughCodec) pass(p []byte, w io.Writer) error {
	for c.pending != nil && len(p) > 0 {
		n, err := c.passFrame(p, w)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	if len(p) == 0 {
		return nil
	}
	c.follow(p)
	_, err := w.Write(p)
	return err
}

func (c *passthroughCodec) passToBoundary(p []byte, w io.Writer) (n int, err error) {
	for n < len(p) && !c.atBoundary() && err == nil {
		var m int
		if c.pending != nil && len(c.pending.held) > 0 {
			m, err = c.passFrame(p[n:], w)
		} else {
			m = c.advance(p[n:])
			_, err = w.Write(p[n : n+m])
		}
		n += m
	}
	return n, err
}

// passFrame passes on the next piece of a frame, and takes the frame out if it is the Pong to our
// ping. The header, and the payload of a short Pong, are held until they are complete.
func (c *passthroughCodec) passFrame(p []byte, w io.Writer) (n int, err error) {
	if len(c.pending.held) == 0 && !c.boundary.atBoundary() { // in the middle of one
		n = c.advance(p)
		_, err = w.Write(p[:n])
		return n, err
	}
	n = c.advance(p)
	c.pending.held = append(c.pending.held, p[:n]...)
	if c.have > 0 {
		return n, nil
	}
	h := parseHeader(c.pending.held)
	if h.opcode() == opPong && h.length == uint64(len(c.pending.payload)) {
		if c.remaining > 0 {
			return n, nil
		}
		if ours, latest := matchPong(c.heldPayload(h), c.pending.payload); latest {
			c.pending = nil
			return n, nil
		} else if ours {
			c.pending.held = nil
			return n, nil
		}
	}
	_, err = w.Write(c.pending.held)
	c.pending.held = nil
	return n, err
}

// heldPayload returns the payload, unmasked, of the frame that is held as a whole.
func (c *passthroughCodec) heldPayload(h frameHeader) []byte {
	payload := bytes.Clone(c.pending.held[len(c.pending.held)-int(h.length):])
	if h.masked {
		mask(payload, h.key, 0)
	}
	return payload
}

func (c *passthroughCodec) flushHeld(w io.Writer) error {
	if c.pending == nil || len(c.pending.held) == 0 {
		return nil
	}
	_, err := w.Write(c.pending.held)
	c.pending = nil
	return err
}
