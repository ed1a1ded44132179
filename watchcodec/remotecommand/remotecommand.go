// Package remotecommand implements the WebSocket subprotocols by which Kubernetes carries the
// streams of exec, attach and port-forward over one connection: each message belongs to one channel.
// They are those of k8s.io/streaming's wsstream and of
// k8s.io/cri-streaming/pkg/streaming/remotecommand/websocket.go. The package imports nothing of
// culvert's; package wsupgrade shows a gateway the messages of a tunnel.
package remotecommand

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Protocol is a subprotocol, as Sec-WebSocket-Protocol names it.
type Protocol string

const (
	// Binary is the first version: each message is a byte with the channel's number, then the data.
	Binary Protocol = "channel.k8s.io"
	// Base64 is Binary for clients that can't send binary messages: a digit, then the data in
	// base64, as text.
	Base64 Protocol = "base64.channel.k8s.io"
	// V4 is Binary, with a status in JSON on the Error channel.
	V4 Protocol = "v4.channel.k8s.io"
	// V4Base64 is Base64, with a status in JSON on the Error channel.
	V4Base64 Protocol = "v4.base64.channel.k8s.io"
	// V5 is V4 in which a single channel can be closed, stdin for instance.
	V5 Protocol = "v5.channel.k8s.io"
)

// The channels of exec and attach.
const (
	Stdin  byte = 0
	Stdout byte = 1
	Stderr byte = 2
	// Error carries the status of the command at its end.
	Error byte = 3
	// Resize carries the size of the terminal, see Size.
	Resize byte = 4
	// closeSignal is the channel of V5's close signal: its data is the number of the channel that
	// is closed.
	closeSignal byte = 255
)

// Known reports whether p is one of the constants of this package.
func (p Protocol) Known() bool {
	switch p {
	case Binary, Base64, V4, V4Base64, V5:
		return true
	}
	return false
}

// Text reports whether p's messages are text.
func (p Protocol) Text() bool { return p == Base64 || p == V4Base64 }

// Message is one message.
type Message struct {
	// Channel is the channel's number: Stdin and so on, or for port-forward twice the port's index
	// for its data, and one more than that for its errors.
	Channel byte
	// Data is the content of the message. Decode's may share the encoded message's memory.
	Data []byte
	// Closed reports whether the message closes the channel; then there is no data. Only V5 has
	// such messages.
	Closed bool
}

var (
	errEmpty   = errors.New("remotecommand: an empty message has no channel")
	errKind    = errors.New("remotecommand: a text message where a binary one is expected, or the other way round")
	errClosing = errors.New("remotecommand: a close signal names one channel")
)

// Append appends m in p's encoding, for a text message if p.Text returns true. It returns an error
// for what p can't express: a channel above 9 as a digit, a closed channel before V5.
func (p Protocol) Append(b []byte, m Message) ([]byte, error) {
	switch {
	case !p.Known():
		return b, fmt.Errorf("remotecommand: unknown protocol %q", string(p))
	case m.Closed && p != V5:
		return b, fmt.Errorf("remotecommand: %s can't close one channel", p)
	case m.Closed:
		return append(b, closeSignal, m.Channel), nil
	case p == V5 && m.Channel == closeSignal:
		return b, errors.New("remotecommand: 255 is the close signal")
	case !p.Text():
		return append(append(b, m.Channel), m.Data...), nil
	case m.Channel > 9:
		return b, fmt.Errorf("remotecommand: %d is no digit", m.Channel)
	}
	return base64.StdEncoding.AppendEncode(append(b, '0'+m.Channel), m.Data), nil
}

// Decode decodes a message. text reports whether it was received as a text message. Decode returns
// an error where a server rejects the message: some servers then end the connection, and some drop
// the message silently.
func (p Protocol) Decode(text bool, message []byte) (Message, error) {
	switch {
	case !p.Known():
		return Message{}, fmt.Errorf("remotecommand: unknown protocol %q", string(p))
	case len(message) == 0:
		return Message{}, errEmpty
	case text != p.Text():
		return Message{}, errKind
	case p == V5 && message[0] == closeSignal && len(message) != 2:
		return Message{}, errClosing
	case p == V5 && message[0] == closeSignal:
		return Message{Channel: message[1], Closed: true}, nil
	case !p.Text():
		return Message{Channel: message[0], Data: message[1:]}, nil
	case message[0] < '0' || message[0] > '9':
		return Message{}, fmt.Errorf("remotecommand: %q is no digit of a channel", message[0])
	}
	data, err := base64.StdEncoding.AppendDecode(nil, message[1:])
	if err != nil {
		return Message{}, fmt.Errorf("remotecommand: %s: %w", p, err)
	}
	return Message{Channel: message[0] - '0', Data: data}, nil
}

// Size is the size of a terminal, on the Resize channel.
type Size struct {
	Width, Height uint16 // columns and rows
}

// Message returns the message with s for the Resize channel.
func (s Size) Message() Message {
	return Message{Channel: Resize, Data: fmt.Appendf(nil, `{"Width":%d,"Height":%d}`, s.Width, s.Height)}
}

// ParseSize parses the data of a message of the Resize channel.
func ParseSize(data []byte) (Size, error) {
	var s Size
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("remotecommand: size: %w", err)
	}
	return s, nil
}

// Check returns an error with the reason why a server would ignore a client's message, nil if it
// would not. A web terminal that sends 4{"Width":80,"Height":20} as text over V4 is never resized,
// without any error.
func (p Protocol) Check(text bool, message []byte) error {
	m, err := p.Decode(text, message)
	if err != nil {
		return errors.Join(err, p.hint(text, message))
	}
	switch {
	case m.Closed:
		return nil
	case m.Channel == Resize:
		if _, err := ParseSize(m.Data); err != nil {
			return errors.Join(err, p.hint(text, message))
		}
	case m.Channel != Stdin:
		return errors.Join(fmt.Errorf("remotecommand: a client does not send on channel %d", m.Channel), p.hint(text, message))
	}
	return nil
}

// hint names the most frequent mistake: the encoding of another protocol.
func (p Protocol) hint(text bool, message []byte) error {
	if len(message) < 2 {
		return nil
	}
	raw := strings.HasPrefix(string(message[1:]), "{")
	switch {
	case raw && message[0] == '4' && p.Text():
		return fmt.Errorf("the size is not in base64, as %s wants it", p)
	case raw && message[0] == '4':
		return fmt.Errorf("the channel is the digit '4', and %s wants the byte 4", p)
	case text && !p.Text():
		return fmt.Errorf("%s wants binary messages", p)
	case !text && p.Text():
		return fmt.Errorf("%s wants text messages", p)
	}
	return nil
}

// Translate returns a message of from in to's encoding, and reports whether that is text: for a
// gateway whose browsers speak V4Base64 and whose servers speak V4, for instance.
func Translate(from, to Protocol, text bool, message []byte) (translated []byte, asText bool, err error) {
	m, err := from.Decode(text, message)
	if err != nil {
		return nil, false, err
	}
	translated, err = to.Append(nil, m)
	return translated, to.Text(), err
}
