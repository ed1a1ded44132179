package watchcodec

import "io"

// EventReader reads the events of a watch. It does what JSONReader or ProtobufReader and
// Event.Decode do together, and goes through JSON only once.
//
// An EventReader must not be used by several goroutines at once.
type EventReader struct {
	format   Format
	json     *JSONReader
	protobuf *ProtobufReader
	event    Event
	err      error
}

// NewEventReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. The memory that it holds grows with the largest frame that it has met.
func NewEventReader(src io.Reader, f Format, maxFrame int) *EventReader {
	if f == Protobuf {
		return &EventReader{format: f, protobuf: NewProtobufReader(src, maxFrame)}
	}
	return &EventReader{format: f, json: NewJSONReader(src, maxFrame)}
}

// Next returns the next event, which is valid until the next call. The errors are those of
// the reader of the format's frames and of Event.Decode; none but io.EOF is an end of the
// watch that a server meant. An error stays.
func (r *EventReader) Next() (*Event, error) {
	if r.err != nil {
		return nil, r.err
	}
	frame, decoded, err := r.frame()
	if err == nil && !decoded {
		err = r.event.Decode(r.format, frame)
	}
	switch {
	case err == nil:
		return &r.event, nil
	case err != errMore:
		r.err = err
	}
	return nil, err
}

func (r *EventReader) frame() (frame []byte, decoded bool, err error) {
	if r.format == JSON {
		return r.json.next(&r.event)
	}
	frame, err = r.protobuf.Next()
	return frame, false, err
}

// unfinished says whether a part of a frame has come and not the rest.
func (r *EventReader) unfinished() bool {
	if r.format == JSON {
		return r.json.scan.depth > 0
	}
	return r.protobuf.to > r.protobuf.from
}
