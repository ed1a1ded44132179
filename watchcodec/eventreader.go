package watchcodec

import "io"

// EventReader reads the events of a watch. It does what JSONReader or ProtobufReader and
// Event.Decode do together, but scans JSON only once.
//
// An EventReader must not be used by several goroutines at the same time.
type EventReader struct {
	src    io.Reader
	format Format
	frames framer
	event  Event
	err    error
}

// NewEventReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. Its memory grows with the largest frame read so far.
func NewEventReader(src io.Reader, f Format, maxFrame int) *EventReader {
	return &EventReader{src: src, format: f, frames: newFramer(f, maxFrame)}
}

// Next returns the next event, which is valid until the next call. Its errors are those of
// JSONReader.Next or ProtobufReader.Next and of Event.Decode. Only io.EOF means that the server
// ended the watch as intended. After an error, every call returns that error.
func (r *EventReader) Next() (*Event, error) {
	if r.err != nil {
		return nil, r.err
	}
	frame, decoded, err := pull(r.frames, r.src, &r.event)
	if err == nil && !decoded {
		err = r.event.Decode(r.format, frame)
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	return &r.event, nil
}
