package wsupgrade

import (
	"bytes"
	"io"
)

// passing is the codec of frames that nobody looks into: they pass as they came.
// Only the answers to pings of our own are taken out.
type passing struct {
	boundary
	*question // nil: no ping of ours waits for its answer
}

// question is a ping of our own that waits for its answer.
type question struct {
	ping []byte // the payload of the latest
	held []byte // of a frame that may be the answer
}

func (c *passing) closed() bool     { return c.boundary.closed }
func (c *passing) toldClose() bool  { return c.boundary.closed }
func (c *passing) discard(p []byte) { c.follow(p) }

// expect leaves what is held: it may be of a frame that has to go on.
func (c *passing) expect(payload []byte) {
	if c.question == nil {
		c.question = new(question)
	}
	c.ping = payload
}

func (c *passing) here() bool { return c.boundary.here() && (c.question == nil || len(c.held) == 0) }

func (c *passing) pass(p []byte, w io.Writer) error {
	for c.question != nil && len(p) > 0 {
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

func (c *passing) finish(p []byte, w io.Writer) (n int, err error) {
	for n < len(p) && !c.here() && err == nil {
		var m int
		if c.question != nil && len(c.held) > 0 {
			m, err = c.passFrame(p[n:], w)
		} else {
			m = c.take(p[n:])
			_, err = w.Write(p[n : n+m])
		}
		n += m
	}
	return n, err
}

// passFrame passes on the next piece of a frame, and takes the frame out if it
// answers the ping. The head, and the payload of a short Pong, are held until they
// are there as a whole.
func (c *passing) passFrame(p []byte, w io.Writer) (n int, err error) {
	if len(c.held) == 0 && !c.boundary.here() { // in the middle of one
		n = c.take(p)
		_, err = w.Write(p[:n])
		return n, err
	}
	n = c.take(p)
	c.held = append(c.held, p[:n]...)
	if c.have > 0 {
		return n, nil
	}
	h := parseHead(c.held)
	if h.opcode() == opPong && h.length == uint64(len(c.ping)) {
		if c.left > 0 {
			return n, nil
		}
		if one, latest := answers(c.heldPayload(h), c.ping); latest {
			c.question = nil
			return n, nil
		} else if one {
			c.held = nil
			return n, nil
		}
	}
	_, err = w.Write(c.held)
	c.held = nil
	return n, err
}

// heldPayload is that of the frame that is held as a whole, unmasked.
func (c *passing) heldPayload(h frameHead) []byte {
	payload := bytes.Clone(c.held[len(c.held)-int(h.length):])
	if h.masked {
		mask(payload, h.key, 0)
	}
	return payload
}

func (c *passing) end(w io.Writer) error {
	if c.question == nil || len(c.held) == 0 {
		return nil
	}
	_, err := w.Write(c.held)
	c.question = nil
	return err
}
