package watchcodec

import "io"

// EventParser parses a watch as it is received, written to it in the response of a handler for
// instance, and calls a function with each event.
//
// An EventParser must not be used by several goroutines at the same time.
type EventParser struct {
	format Format
	frames framer
	event  Event
	take   func(*Event) error
	err    error
}

// NewEventParser returns an EventParser that calls take with each event, which is valid until take
// returns. Frames have at most maxFrame bytes; 0 means DefaultMaxFrame.
func NewEventParser(f Format, maxFrame int, take func(*Event) error) *EventParser {
	return &EventParser{format: f, frames: newFramer(f, maxFrame), take: take}
}

// Write parses the next bytes of the watch. Its errors are those of EventReader.Next and of take;
// after one, every call returns that error.
func (p *EventParser) Write(b []byte) (int, error) {
	if p.err == nil {
		p.err = push(p.frames, b, &p.event, p.parse)
	}
	if p.err != nil {
		return 0, p.err
	}
	return len(b), nil
}

func (p *EventParser) parse(frame []byte, decoded bool) error {
	if !decoded {
		if err := p.event.Decode(p.format, frame); err != nil {
			return err
		}
	}
	return p.take(&p.event)
}

// Close is called at the end of the watch. It returns the error that Write has returned, if any,
// and io.ErrUnexpectedEOF if the watch ended within an event.
func (p *EventParser) Close() error {
	if p.err == nil && p.frames.within() {
		p.err = io.ErrUnexpectedEOF
	}
	return p.err
}
