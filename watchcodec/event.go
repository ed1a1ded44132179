package watchcodec

import (
	"encoding/binary"
	"fmt"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// EventType is the type of a watch event (k8s.io/apimachinery/pkg/watch).
type EventType string

const (
	// Added has an object that is new to the watch: it was created, or its client may see it now.
	Added EventType = "ADDED"
	// Modified has the new state of an object.
	Modified EventType = "MODIFIED"
	// Deleted has the last state of an object that was deleted, or that its client may no longer see.
	Deleted EventType = "DELETED"
	// Bookmark carries a resourceVersion up to which all events were sent; its object has no name.
	Bookmark EventType = "BOOKMARK"
	// Error has a Status as its object, and is the last event of a watch.
	Error EventType = "ERROR"
)

// Event is a watch event. Reuse it for successive frames to avoid allocation.
type Event struct {
	// Type is the event's type. It may be changed.
	Type EventType
	// Object is the object that the event is about. It may be edited.
	Object Object

	decodedType EventType // Type as it was decoded
	frame       []byte
	envelope    []byte // of protobuf: the runtime.Unknown around the object
}

// Decode parses a frame as JSONReader or ProtobufReader returns it. The event is valid as long as
// the frame. If the frame is malformed, Decode returns an error and the event's object is unknown:
// a caller that hides objects must not pass the frame on.
func (e *Event) Decode(f Format, frame []byte) error {
	if f == Protobuf {
		e.reset(f)
		return e.decodeProtobuf(frame)
	}
	end, err := e.decodeFirst(frame)
	if err != nil {
		return err
	}
	if end = scan.SkipSpace(frame, end); end < len(frame) {
		return scan.Malformed(end)
	}
	e.frame = frame
	return nil
}

// decodeFirst parses the JSON event that p begins with, and returns the index after it.
func (e *Event) decodeFirst(p []byte) (end int, err error) {
	e.reset(JSON)
	if end, err = e.decodeJSON(p); err != nil {
		return end, err
	}
	e.frame, e.decodedType = p[:end:end], e.Type
	return end, nil
}

func (e *Event) reset(f Format) {
	e.Object.reset(f)
	e.Type, e.decodedType, e.frame, e.envelope = "", "", nil, nil
}

func (e *Event) decodeJSON(p []byte) (end int, err error) {
	c, err := scan.Enter(p, scan.SkipSpace(p, 0), '{', e.Object.resetWindow())
	if err != nil {
		return 0, err
	}
	for {
		more, err := c.More()
		if err != nil {
			return c.At, err
		}
		if !more {
			break
		}
		key, err := c.Key()
		if err != nil {
			return c.At, err
		}
		switch k, err := scan.Known(key.Of(p), "type", "object"); {
		case err != nil:
			return c.At, err
		case k == "object":
			if e.Object.raw != nil {
				return c.At, scan.Malformed(c.At)
			}
			if err = e.Object.parseJSON(&c); err != nil {
				return c.At, err
			}
		case k == "type":
			value, err := c.Value()
			if err != nil {
				return c.At, err
			}
			t, ok := Value{JSON, value.Of(p)}.Text()
			if !ok || e.Type != "" {
				return c.At, scan.Malformed(value.Start)
			}
			if err := e.setType(t); err != nil {
				return c.At, err
			}
		default:
			if _, err := c.Value(); err != nil {
				return c.At, err
			}
		}
	}
	if e.Type == "" || e.Object.raw == nil {
		return c.At, scan.Malformed(c.At)
	}
	return c.At, nil
}

// setType sets the type, and returns an error for an unknown one: what a client would do with that
// is not known.
func (e *Event) setType(t []byte) error {
	switch string(t) {
	case string(Added):
		e.Type = Added
	case string(Modified):
		e.Type = Modified
	case string(Deleted):
		e.Type = Deleted
	case string(Bookmark):
		e.Type = Bookmark
	case string(Error):
		e.Type = Error
	default:
		return fmt.Errorf("watchcodec: unknown event type %q", t)
	}
	return nil
}

// Fields of WatchEvent and RawExtension (k8s.io/apimachinery/pkg/apis/meta/v1 and
// pkg/runtime, generated.proto).
const (
	eventType, eventObject = 1, 2
	extensionRaw           = 1
)

func (e *Event) decodeProtobuf(p []byte) error {
	var object []byte
	for i := 0; i < len(p); {
		f, err := scan.NextField(p, i)
		if err != nil {
			return err
		}
		i = f.Whole.End
		switch f.Number {
		case eventType:
			if f.Wire != scan.WireBytes || e.Type != "" {
				return scan.ErrProtobuf
			}
			if err := e.setType(f.Value.Of(p)); err != nil {
				return err
			}
		case eventObject:
			if f.Wire != scan.WireBytes || object != nil {
				return scan.ErrProtobuf
			}
			object = f.Value.Of(p)
		}
	}
	extension, err := scan.NextField(object, 0)
	if err != nil || e.Type == "" || extension.Number != extensionRaw || extension.Wire != scan.WireBytes || extension.Whole.End != len(object) {
		return scan.ErrProtobuf
	}
	e.envelope, e.frame, e.decodedType = extension.Value.Of(object), p, e.Type
	return e.Object.open(e.envelope)
}

// changed reports whether the event was modified since it was decoded.
func (e *Event) changed() bool { return e.Type != e.decodedType || e.Object.edited }

// Append appends the event as a watch sends it: JSON with a newline after it, protobuf with its
// length before it. An unmodified event is appended as it was received, byte for byte.
func (e *Event) Append(dst []byte) ([]byte, error) {
	switch {
	case e.Object.format == JSON && !e.changed():
		return append(append(dst, e.frame...), '\n'), nil
	case e.Object.format == JSON:
		dst = append(append(dst, `{"type":"`...), e.Type...)
		dst = append(append(dst, `","object":`...), e.Object.raw...)
		return append(dst, "}\n"...), nil
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst, err := e.appendProtobuf(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, err
}

func (e *Event) appendProtobuf(dst []byte) ([]byte, error) {
	if !e.changed() {
		return append(dst, e.frame...), nil
	}
	dst = scan.AppendBytesField(dst, eventType, []byte(e.Type))
	return scan.AppendNested(dst, eventObject, len(e.envelope), func(b []byte) ([]byte, error) {
		return scan.AppendNested(b, extensionRaw, len(e.envelope), func(b []byte) ([]byte, error) {
			return e.Object.seal(b, e.envelope), nil
		})
	})
}

// AppendEvent appends an event with the object o, as a watch sends it. In JSON, kind and apiVersion
// are added to an object that has no kind.
func AppendEvent(dst []byte, t EventType, o *Object) ([]byte, error) {
	if o.format == JSON {
		dst = append(append(append(dst, `{"type":"`...), t...), `","object":`...)
		return append(o.appendText(dst), "}\n"...), nil
	}
	start := len(dst)
	dst = scan.AppendBytesField(append(dst, 0, 0, 0, 0), eventType, []byte(t))
	dst, err := scan.AppendNested(dst, eventObject, len(o.raw), func(b []byte) ([]byte, error) {
		return scan.AppendNested(b, extensionRaw, len(o.raw), func(b []byte) ([]byte, error) {
			return appendSealed(b, o.apiVersion, o.kind, o.raw), nil
		})
	})
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, err
}

// appendText appends a JSON object with its kind.
func (o *Object) appendText(dst []byte) []byte {
	if !o.hasKind {
		o.refresh() // an edit may have set it
	}
	if o.hasKind {
		return append(dst, o.raw...)
	}
	dst = append(append(dst, `{"kind":`...), quoted(string(o.kind))...)
	dst = append(append(dst, `,"apiVersion":`...), quoted(string(o.apiVersion))...)
	if rest := o.raw[1+scan.SkipSpace(o.raw[1:], 0):]; rest[0] == '}' {
		return append(dst, '}')
	}
	return append(append(dst, ','), o.raw[1:]...)
}
