package wsupgrade

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/culvert-go/culvert/internal/panics"
)

// inspectingCodec is the codec of a direction that an Observer inspects. It writes whole frames
// only, so dst is always at a boundary.
type inspectingCodec struct {
	o          *Observer
	fromClient bool
	deflate    *deflate // nil: not negotiated
	source     boundary // of what src has sent
	sentClose  bool     // a Close frame was passed on to dst
	ping       []byte   // payload of our latest ping, nil when it has its Pong

	raw     []byte      // the header that is not complete
	header  frameHeader // of the frame under way
	inFrame bool        // a frame is under way
	data    []byte      // of that frame

	message    []byte // of the fragments so far
	kind       MessageType
	fragmented bool // a message has begun
	compressed bool
}

func (c *inspectingCodec) onlyPongs(p []byte) bool                       { return c.source.onlyPongs(p) }
func (c *inspectingCodec) closeReceived() bool                           { return c.source.closeBegun }
func (c *inspectingCodec) closeSent() bool                               { return c.sentClose }
func (c *inspectingCodec) atBoundary() bool                              { return true }
func (c *inspectingCodec) expectPong(payload []byte)                     { c.ping = payload }
func (c *inspectingCodec) discard(p []byte)                              { c.source.follow(p) }
func (c *inspectingCodec) passToBoundary([]byte, io.Writer) (int, error) { return 0, nil }
func (c *inspectingCodec) flushHeld(io.Writer) error                     { return nil }

func (c *inspectingCodec) pass(p []byte, w io.Writer) (err error) {
	defer panics.Catch(&err) // of the Observer: one direction runs on a goroutine on which it would end the program
	c.source.follow(p)
	for len(p) > 0 || c.inFrame && uint64(len(c.data)) == c.header.length {
		if !c.inFrame {
			n, err := c.readHeader(p)
			if err != nil {
				return err
			}
			p = p[n:]
			continue
		}
		n := min(uint64(len(p)), c.header.length-uint64(len(c.data)))
		c.data = append(c.data, p[:n]...)
		p = p[n:]
		if uint64(len(c.data)) == c.header.length {
			if err := c.handleFrame(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// readHeader collects a header, and checks it when it is complete.
func (c *inspectingCodec) readHeader(p []byte) (n int, err error) {
	need := 2
	if len(c.raw) >= 2 {
		need = headerLen(c.raw)
	}
	n = min(len(p), need-len(c.raw))
	c.raw = append(c.raw, p[:n]...)
	if len(c.raw) < 2 || len(c.raw) < headerLen(c.raw) {
		return n, nil
	}
	c.header = parseHeader(c.raw)
	c.raw, c.data, c.inFrame = c.raw[:0], c.data[:0], true
	return n, c.checkHeader()
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

// checkHeader checks what RFC 6455 section 5 says about a header.
func (c *inspectingCodec) checkHeader() error {
	h := c.header
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

// handleFrame handles a frame that is complete.
func (c *inspectingCodec) handleFrame(w io.Writer) error {
	c.inFrame = false
	if c.header.masked {
		mask(c.data, c.header.key, 0)
	}
	defer c.releaseBuffers()
	if c.header.opcode() >= opClose {
		return c.handleControl(w)
	}
	final, continuation := c.header.first&finBit != 0, c.fragmented
	if !continuation {
		c.kind, c.compressed = MessageType(c.header.opcode()), c.header.first&rsv1Bit != 0
	}
	f := Frame{FromClient: c.fromClient, Final: final, Continuation: continuation, Type: c.kind, Data: c.data}
	err := c.observe(&f)
	if err == ErrDrop && !continuation && final {
		return nil
	} else if err != nil {
		return c.closeError(err)
	}
	c.fragmented = !final
	if c.o.Message == nil {
		return c.passFragment(&f, w)
	}
	c.message = append(c.message, f.Data...)
	if !final {
		return nil
	}
	return c.handleMessage(w)
}

func (c *inspectingCodec) observe(f *Frame) error {
	if c.o.Frame == nil {
		return nil
	}
	return c.o.Frame(f)
}

// passFragment passes on a frame of an Observer without Message.
func (c *inspectingCodec) passFragment(f *Frame, w io.Writer) error {
	if c.kind == Text {
		// A character may be cut by the frame's end.
		c.message = append(c.message, f.Data...)
		c.message = c.message[validPrefix(c.message):]
		if len(c.message) >= utf8.UTFMax || f.Final && len(c.message) > 0 || !startsRune(c.message) {
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

// validPrefix returns the length of the prefix of p that is whole characters.
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

// startsRune reports whether p may be the beginning of one character.
func startsRune(p []byte) bool { return len(p) == 0 || !utf8.FullRune(p) }

// handleMessage handles a message of which all frames were received.
func (c *inspectingCodec) handleMessage(w io.Writer) (err error) {
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
		return c.closeError(err)
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

// handleControl handles a control frame, which may be between the fragments of a message.
func (c *inspectingCodec) handleControl(w io.Writer) error {
	m := Message{FromClient: c.fromClient, Type: MessageType(c.header.opcode()), Data: c.data}
	switch {
	case m.Type == CloseMessage:
		if err := checkClose(m.Data); err != nil {
			return err
		}
	case m.Type == Pong:
		if ours, latest := matchPong(m.Data, c.ping); latest {
			c.ping = nil
			return nil
		} else if ours {
			return nil
		}
	}
	if err := c.observe(&Frame{FromClient: c.fromClient, Final: true, Type: m.Type, Data: m.Data}); err == ErrDrop {
		return nil
	} else if err != nil {
		return c.closeError(err)
	}
	if c.o.Message != nil {
		if err := c.o.Message(&m); err == ErrDrop {
			return nil
		} else if err != nil {
			return c.closeError(err)
		}
	}
	c.sentClose = c.sentClose || m.Type == CloseMessage
	return c.write(w, finBit|byte(m.Type), m.Data)
}

// checkClose checks the payload of a Close frame (RFC 6455 sections 5.5.1 and 7.4).
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

// closeError returns the close that an Observer's error calls for.
func (c *inspectingCodec) closeError(err error) error {
	var end *CloseError
	if errors.As(err, &end) && end != nil {
		return end
	}
	return &CloseError{PolicyViolation, ""}
}

func (c *inspectingCodec) write(w io.Writer, first byte, data []byte) error {
	_, err := w.Write(appendFrame(nil, first, c.fromClient, data))
	return err
}

// maxIdleBuffer is how large a buffer an idle direction may keep.
const maxIdleBuffer = 1 << 10

func (c *inspectingCodec) releaseBuffers() {
	if cap(c.data) > maxIdleBuffer {
		c.data = nil
	}
	if cap(c.message) > maxIdleBuffer && len(c.message) == 0 {
		c.message = nil
	}
}
