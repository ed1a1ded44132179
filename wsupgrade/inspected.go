package wsupgrade

import (
	"encoding/binary"
	"errors"
	"io"
	"runtime/debug"
	"unicode/utf8"
)

// inspected is the codec of a direction that an Observer looks into. It writes whole
// frames only, so dst always stands at a boundary.
type inspected struct {
	o          *Observer
	fromClient bool
	deflate    *deflate // nil: was not agreed on
	source     boundary // of what src has sent
	told       bool     // dst has been sent a Close frame
	ping       []byte   // see passing

	raw  []byte    // the head that is not complete
	head frameHead // of the frame that is under way
	in   bool      // there is one
	data []byte    // of that frame

	message    []byte // of the fragments so far
	kind       MessageType
	fragmented bool // a message has begun
	compressed bool
}

func (c *inspected) closed() bool                          { return c.source.closed }
func (c *inspected) toldClose() bool                       { return c.told }
func (c *inspected) here() bool                            { return true }
func (c *inspected) expect(payload []byte)                 { c.ping = payload }
func (c *inspected) discard(p []byte)                      { c.source.follow(p) }
func (c *inspected) finish([]byte, io.Writer) (int, error) { return 0, nil }
func (c *inspected) end(io.Writer) error                   { return nil }

func (c *inspected) pass(p []byte, w io.Writer) (err error) {
	defer c.catch(&err)
	c.source.follow(p)
	for len(p) > 0 || c.in && uint64(len(c.data)) == c.head.length {
		if !c.in {
			n, err := c.takeHead(p)
			if err != nil {
				return err
			}
			p = p[n:]
			continue
		}
		n := min(uint64(len(p)), c.head.length-uint64(len(c.data)))
		c.data = append(c.data, p[:n]...)
		p = p[n:]
		if uint64(len(c.data)) == c.head.length {
			if err := c.frame(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// catch makes an error of a panic of the Observer's: one of the directions runs on a goroutine on which a panic would end
// the program.
func (c *inspected) catch(err *error) {
	if v := recover(); v != nil {
		*err = &panicError{v, debug.Stack()}
	}
}

// takeHead collects a head, and checks it when it is complete.
func (c *inspected) takeHead(p []byte) (n int, err error) {
	need := 2
	if len(c.raw) >= 2 {
		need = headLen(c.raw)
	}
	n = min(len(p), need-len(c.raw))
	c.raw = append(c.raw, p[:n]...)
	if len(c.raw) < 2 || len(c.raw) < headLen(c.raw) {
		return n, nil
	}
	c.head = parseHead(c.raw)
	c.raw, c.data, c.in = c.raw[:0], c.data[:0], true
	return n, c.checkHead()
}

var (
	errMask     = &CloseError{ProtocolError, "mask"}
	errReserved = &CloseError{ProtocolError, "reserved bits or opcode"}
	errControl  = &CloseError{ProtocolError, "control frame"}
	errFragment = &CloseError{ProtocolError, "fragments"}
	errLength   = &CloseError{ProtocolError, "length"}
	errTooBig   = &CloseError{TooBig, ""}
	errUTF8     = &CloseError{InvalidData, ""}
	errClosing  = &CloseError{ProtocolError, "close frame"}
	errDeflate  = &CloseError{InvalidData, "compressed data"}
)

// checkHead is RFC 6455 section 5, as far as a head goes.
func (c *inspected) checkHead() error {
	h := c.head
	rsv := h.first & rsvBits
	op := h.opcode()
	control := op >= opClose
	switch {
	case h.masked != c.fromClient:
		return errMask
	case op > opBinary && op < opClose || op > opPong:
		return errReserved
	case rsv != 0 && (rsv != rsv1Bit || c.deflate == nil || op != opText && op != opBinary):
		return errReserved
	case h.length>>63 != 0:
		return errLength
	case control && (h.length > maxControl || h.first&finBit == 0):
		return errControl
	case !control && (op == opContinuation) != c.fragmented:
		return errFragment
	case !control && h.length+uint64(len(c.message)) > c.o.maxMessage():
		return errTooBig
	}
	return nil
}

// frame handles a frame that is complete.
func (c *inspected) frame(w io.Writer) error {
	c.in = false
	if c.head.masked {
		mask(c.data, c.head.key, 0)
	}
	defer c.shrink()
	if c.head.opcode() >= opClose {
		return c.control(w)
	}
	final, continuation := c.head.first&finBit != 0, c.fragmented
	if !continuation {
		c.kind, c.compressed = MessageType(c.head.opcode()), c.head.first&rsv1Bit != 0
	}
	f := Frame{FromClient: c.fromClient, Final: final, Continuation: continuation, Type: c.kind, Data: c.data}
	err := c.observe(&f)
	if err == ErrDrop && !continuation && final {
		return nil
	} else if err != nil {
		return c.refusal(err)
	}
	c.fragmented = !final
	if c.o.Message == nil {
		return c.passFragment(&f, w)
	}
	c.message = append(c.message, f.Data...)
	if !final {
		return nil
	}
	return c.whole(w)
}

func (c *inspected) observe(f *Frame) error {
	if c.o.Frame == nil {
		return nil
	}
	return c.o.Frame(f)
}

// passFragment passes on a frame of which nobody wants to see the message.
func (c *inspected) passFragment(f *Frame, w io.Writer) error {
	if c.kind == Text {
		// A character may be cut by the frame's end.
		c.message = append(c.message, f.Data...)
		c.message = c.message[validPrefix(c.message):]
		if len(c.message) >= utf8.UTFMax || f.Final && len(c.message) > 0 || !utf8Begin(c.message) {
			return errUTF8
		}
	}
	first := byte(c.kind)
	if f.Continuation {
		first = opContinuation
	}
	if f.Final {
		first |= finBit
	}
	return c.write(w, first, f.Data)
}

// validPrefix returns how much of p is whole characters.
func validPrefix(p []byte) (n int) {
	for n < len(p) {
		r, size := utf8.DecodeRune(p[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

// utf8Begin says whether p may be the beginning of one character.
func utf8Begin(p []byte) bool { return len(p) == 0 || !utf8.FullRune(p) }

// whole handles a message of which all frames are there.
func (c *inspected) whole(w io.Writer) (err error) {
	data := c.message
	c.message = c.message[:0]
	if c.compressed {
		if data, err = c.deflate.inflate(data, c.o.maxMessage()); err != nil {
			return err
		}
	}
	if c.kind == Text && !utf8.Valid(data) {
		return errUTF8
	}
	m := Message{FromClient: c.fromClient, Type: c.kind, Data: data}
	switch err := c.o.Message(&m); {
	case err == ErrDrop:
		return nil
	case err != nil:
		return c.refusal(err)
	}
	if !c.compressed {
		return c.write(w, finBit|byte(m.Type), m.Data)
	}
	deflated, ok, err := c.deflate.deflate(m.Data)
	if err != nil || !ok {
		return errors.Join(err, c.write(w, finBit|byte(m.Type), m.Data))
	}
	return c.write(w, finBit|rsv1Bit|byte(m.Type), deflated)
}

// control handles a control frame, which may stand between the fragments of a message.
func (c *inspected) control(w io.Writer) error {
	m := Message{FromClient: c.fromClient, Type: MessageType(c.head.opcode()), Data: c.data}
	switch {
	case m.Type == CloseMessage:
		if err := checkClose(m.Data); err != nil {
			return err
		}
	case m.Type == Pong:
		if one, latest := answers(m.Data, c.ping); latest {
			c.ping = nil
			return nil
		} else if one {
			return nil
		}
	}
	if err := c.observe(&Frame{FromClient: c.fromClient, Final: true, Type: m.Type, Data: m.Data}); err == ErrDrop {
		return nil
	} else if err != nil {
		return c.refusal(err)
	}
	if c.o.Message != nil {
		if err := c.o.Message(&m); err == ErrDrop {
			return nil
		} else if err != nil {
			return c.refusal(err)
		}
	}
	c.told = c.told || m.Type == CloseMessage
	return c.write(w, finBit|byte(m.Type), m.Data)
}

// checkClose is RFC 6455 sections 5.5.1 and 7.4.
func checkClose(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if len(p) == 1 {
		return errClosing
	}
	switch code := binary.BigEndian.Uint16(p); {
	case code < 1000 || code >= 1016 && code < 3000 || code > 4999:
		return errClosing
	case code == 1004 || code == 1005 || code == 1006 || code == 1015:
		return errClosing
	case !utf8.Valid(p[2:]):
		return errUTF8
	}
	return nil
}

// refusal is the end that an observer's error asks for.
func (c *inspected) refusal(err error) error {
	var end *CloseError
	if errors.As(err, &end) && end != nil {
		return end
	}
	return &CloseError{PolicyViolation, ""}
}

func (c *inspected) write(w io.Writer, first byte, data []byte) error {
	_, err := w.Write(appendFrame(nil, first, c.fromClient, data))
	return err
}

// keep is what an idle direction holds of its buffers.
const keep = 1 << 10

func (c *inspected) shrink() {
	if cap(c.data) > keep {
		c.data = nil
	}
	if cap(c.message) > keep && len(c.message) == 0 {
		c.message = nil
	}
}
