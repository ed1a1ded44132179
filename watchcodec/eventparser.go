package watchcodec

import (
	"errors"
	"io"
)

// errMore is the error of a read that needs more bytes than were received so far.
var errMore = errors.New("watchcodec: more is to come")

// feed is the source of a reader that receives its bytes piece by piece.
type feed struct {
	p     []byte
	ended bool // the stream has ended; Read returns io.EOF
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

// EventParser is an EventReader that is written to: it takes a watch as it is received, in the
// response of a handler for instance, and calls a function with each event.
//
// An EventParser must not be used by several goroutines at the same time.
type EventParser struct {
	feed   feed
	events *EventReader
	take   func(*Event) error
}

// NewEventParser returns a writer that calls take with each event, which is valid until take
// returns. Frames have at most maxFrame bytes; 0 means DefaultMaxFrame.
func NewEventParser(f Format, maxFrame int, take func(*Event) error) *EventParser {
	w := &EventParser{take: take}
	w.events = NewEventReader(&w.feed, f, maxFrame)
	return w
}

// Write takes the next bytes of the watch. Its errors are those of EventReader.Next and of take;
// after one, every call returns that error.
func (w *EventParser) Write(p []byte) (int, error) {
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

// Close is called at the end of the watch. It returns the error that Write has returned, if any,
// and io.ErrUnexpectedEOF if the watch ended within an event.
func (w *EventParser) Close() error {
	w.feed.p = nil
	if w.events.err == nil && w.events.unfinished() {
		w.events.err = io.ErrUnexpectedEOF
	}
	return w.events.err
}
