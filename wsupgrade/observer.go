package wsupgrade

import (
	"errors"
	"net/http"
	"strings"
)

// MessageType is the type of a message: its opcode (RFC 6455 section 5.2).
type MessageType byte

const (
	// Text is a data message of UTF-8 text.
	Text MessageType = opText
	// Binary is a data message of any bytes.
	Binary MessageType = opBinary
	// CloseMessage is a Close frame. Its data is a code of two bytes and a reason, or empty.
	CloseMessage MessageType = opClose
	// Ping requests a Pong with the same data.
	Ping MessageType = opPing
	// Pong is the response to a Ping, or is sent unrequested as a heartbeat.
	Pong MessageType = opPong
)

// String returns "text", "binary", "close", "ping" or "pong".
func (t MessageType) String() string {
	switch t {
	case Text:
		return "text"
	case Binary:
		return "binary"
	case CloseMessage:
		return "close"
	case Ping:
		return "ping"
	case Pong:
		return "pong"
	}
	return "unknown"
}

// Message is a message on its way from one end of a WebSocket to the other.
type Message struct {
	// FromClient reports whether the client sent the message.
	FromClient bool
	// Type is the message's type. The Observer may change it.
	Type MessageType
	// Data is the message's content: unmasked, joined from its frames, and inflated. The Observer
	// may change it, and must not keep it.
	Data []byte
}

// Frame is a frame on its way from one end of a WebSocket to the other.
type Frame struct {
	// FromClient reports whether the client sent the frame.
	FromClient bool
	// Final reports whether the frame is the last one of its message.
	Final bool
	// Continuation reports whether the message began with an earlier frame.
	Continuation bool
	// Type is the type of the frame's message.
	Type MessageType
	// Data is the frame's content, unmasked. The Observer may change it, and must not
	// keep it.
	Data []byte
}

// ErrDrop is returned by an Observer's functions for a message or a frame that is not to be passed
// on.
var ErrDrop = errors.New("wsupgrade: dropped")

// Observer inspects one WebSocket. Its functions are called one after the other for each direction,
// but for both directions at the same time; nothing else is passed on in a direction during a call.
// If a function returns nil, the message or frame is passed on, changed or not; if ErrDrop, it is
// dropped; if a *CloseError, both ends are closed with its code; if any other error or a nil
// *CloseError, with PolicyViolation.
//
// With an Observer frames are held until they are complete, and broken ones end the WebSocket as
// RFC 6455 says: ProtocolError, InvalidData for a text that is not UTF-8, TooBig. The Pongs to the
// gateway's own pings are not shown. A panic of one of its functions ends this WebSocket alone,
// with InternalError: see Forwarder.Forward and Forwarder.Start.
type Observer struct {
	// Message, if not nil, is called with each message, control frames included; a message is then
	// passed on as one frame. If it is nil, fragments are passed on as fragments.
	Message func(*Message) error
	// Frame, if not nil, is called with each frame, before Message. A frame that it drops must not
	// be a piece of a message.
	Frame func(*Frame) error
	// MaxMessage is how many bytes a message may have, inflated; 0 means 1 MiB.
	MaxMessage int64
	// Inflate lets the ends negotiate permessage-deflate (RFC 7692): messages are inflated for
	// Message and deflated again. Without it, and if Message is nil, the client's offer is not
	// passed on to the target.
	Inflate bool
}

const defaultMaxMessage = 1 << 20

func (o *Observer) maxMessage() uint64 {
	if o.MaxMessage > 0 {
		return uint64(o.MaxMessage)
	}
	return defaultMaxMessage
}

// inflates reports whether the ends may deflate.
func (o *Observer) inflates() bool { return o.Inflate && o.Message != nil }

const extensionsField = "Sec-Websocket-Extensions"

// offer returns out with the extensions that may be offered to the target of an observed WebSocket:
// none that changes frames in a way that is not understood here.
func (o *Observer) offer(out *http.Request) *http.Request {
	lines := out.Header[extensionsField]
	if o == nil || lines == nil {
		return out
	}
	var kept []string
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if o.inflates() && extensionName(item) == deflateName {
				kept = append(kept, strings.TrimSpace(item))
			}
		}
	}
	r := *out
	r.Header = out.Header.Clone()
	delete(r.Header, extensionsField)
	if kept != nil {
		r.Header[extensionsField] = []string{strings.Join(kept, ", ")}
	}
	return &r
}
