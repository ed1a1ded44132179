package wsupgrade

import (
	"errors"
	"net/http"
	"strings"
)

// MessageType is what a message is, by its opcode (RFC 6455 section 5.2).
type MessageType byte

const (
	// Text is UTF-8.
	Text MessageType = opText
	// Binary is anything.
	Binary MessageType = opBinary
	// CloseMessage has a code of two bytes and a reason as its data, or nothing.
	CloseMessage MessageType = opClose
	// Ping asks for a Pong with the same data.
	Ping MessageType = opPing
	// Pong answers a Ping, or is a sign of life.
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
	// FromClient says whose it is.
	FromClient bool
	// Type is what it is. The Observer may change it.
	Type MessageType
	// Data is its content: inflated, unmasked, put together of its frames. The
	// Observer may change it, and must not keep it.
	Data []byte
}

// Frame is a frame on its way.
type Frame struct {
	FromClient bool
	// Final says whether it is the last one of its message.
	Final bool
	// Continuation says whether the message began with an earlier frame.
	Continuation bool
	// Type is that of the frame's message.
	Type MessageType
	// Data is the frame's content, unmasked. The Observer may change it, and must not
	// keep it.
	Data []byte
}

// ErrDrop is what an Observer returns for a message or a frame that is not to go on.
var ErrDrop = errors.New("wsupgrade: dropped")

// Observer looks into one WebSocket. Its functions are called one after the other for
// what the client sends, and one after the other for what the target sends, but for
// both at the same time; nothing else goes on in that direction meanwhile. What they
// return decides: nil passes it on, changed or not, ErrDrop does not, a *CloseError
// closes both ends with its code, and any other error does with PolicyViolation, as does a nil *CloseError.
//
// With an Observer frames are held until they are complete, and broken ones end the
// WebSocket as RFC 6455 says: ProtocolError, InvalidData for a text that is not UTF-8,
// TooBig. The responses to pings of the gateway's own are not shown. A panic of one of its functions
// ends this WebSocket alone, with InternalError: see Forwarder.Forward and Forwarder.Start.
type Observer struct {
	// Message is called with each message, control frames included. nil means that
	// only Frame looks, and fragments stay fragments. A message goes on as one frame.
	Message func(*Message) error
	// Frame is called with each frame, before Message; nil for nobody. A frame that it
	// drops must not be a piece of a message.
	Frame func(*Frame) error
	// MaxMessage is how many bytes a message may have, inflated; 0 means 1 MiB.
	MaxMessage int64
	// Inflate lets the ends agree on permessage-deflate (RFC 7692): messages are
	// inflated for Message and deflated again. Otherwise, and without Message, it is
	// negotiated away: the offer does not reach the target.
	Inflate bool
}

const defaultMaxMessage = 1 << 20

func (o *Observer) maxMessage() uint64 {
	if o.MaxMessage > 0 {
		return uint64(o.MaxMessage)
	}
	return defaultMaxMessage
}

// inflates says whether the ends may deflate.
func (o *Observer) inflates() bool { return o.Inflate && o.Message != nil }

const extensionsField = "Sec-Websocket-Extensions"

// offer returns the request with what may be offered to the target where messages are
// looked into: nothing that changes frames in a way that is not understood here.
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
