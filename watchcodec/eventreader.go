package watchcodec

import "io"

// EventReader reads the events of a watch. It does what JSONReader or ProtobufReader and
// Event.Decode do together, but scans JSON only once.
//
// An EventReader must not be used by several goroutines at the same time.
type EventReader struct {
	format   Format
	json     *JSONReader
	protobuf *ProtobufReader
	event    Event
	err      error
}

// NewEventReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. Its memory grows with the largest frame read so far.
func NewEventReader(src io.Reader, f Format, maxFrame int) *EventReader {
	if f == Protobuf {
		return &EventReader{format: f, protobuf: NewProtobufReader(src, maxFrame)}
	}
	return &EventReader{format: f, json: NewJSONReader(src, maxFrame)}
}

// Next returns the next event, which is valid until the next call. Its errors are those of
// JSONReader.Next or ProtobufReader.Next and of Event.Decode. Only io.EOF means that the server
// ended the watch as intended. After an error, every call returns that error.
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

// unfinished reports whether a part of a frame was received and the rest was not.
func (r *EventReader) unfinished() bool {
	if r.format == JSON {
		return r.json.scan.Within()
	}
	return r.protobuf.to > r.protobuf.from
}
