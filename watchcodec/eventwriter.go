package watchcodec

import (
	"errors"
	"io"
)

// errMore says that a frame has not come as a whole yet.
var errMore = errors.New("watchcodec: more is to come")

// feed is the stream of a reader that is given its bytes piece by piece.
type feed struct {
	p     []byte
	ended bool // no more is to come
}

func (f *feed) Read(b []byte) (int, error) {
	if len(f.p) == 0 {
		if f.ended {
			return 0, io.EOF
		}
		return 0, errMore
	}
	n := copy(b, f.p)
	f.p = f.p[n:]
	return n, nil
}

// EventWriter is an EventReader that is written to: it takes a watch as it comes, in the
// answer of a handler for instance, and hands over its events.
//
// An EventWriter must not be used by several goroutines at once.
type EventWriter struct {
	feed   feed
	events *EventReader
	take   func(*Event) error
}

// NewEventWriter returns a writer that calls take with each event, which is valid until
// take returns. Frames have at most maxFrame bytes; 0 means DefaultMaxFrame.
func NewEventWriter(f Format, maxFrame int, take func(*Event) error) *EventWriter {
	w := &EventWriter{take: take}
	w.events = NewEventReader(&w.feed, f, maxFrame)
	return w
}

// Write takes a piece of the watch. The errors are those of EventReader.Next and of take,
// and stay.
func (w *EventWriter) Write(p []byte) (int, error) {
	w.feed.p = p
	for {
		event, err := w.events.Next()
		if err == errMore {
			return len(p), nil
		}
		if err == nil {
			err = w.take(event)
		}
		if err != nil {
			w.events.err = err
			return 0, err
		}
	}
}

// Close is called at the end of the watch. The error is io.ErrUnexpectedEOF in the middle
// of an event, and one that Write has returned.
func (w *EventWriter) Close() error {
	w.feed.p = nil
	if w.events.err == nil && w.events.unfinished() {
		w.events.err = io.ErrUnexpectedEOF
	}
	return w.events.err
}
