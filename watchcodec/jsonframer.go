package watchcodec

import (
	"bytes"
	"fmt"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// jsonFramer splits a stream of concatenated JSON objects.
type jsonFramer struct {
	max     int
	buf     []byte // buf[start:end] was received and not returned
	start   int
	end     int
	scanned int   // buf[start:scanned] was scanned
	offset  int64 // of buf[0] in the stream
	scan    scan.Scanner
}

func makeJSONFramer(maxFrame int) jsonFramer {
	limit := frameLimit(maxFrame)
	return jsonFramer{max: limit, buf: make([]byte, min(4<<10, limit))}
}

// next implements framer. If e is not nil and the whole frame is buffered, next finds the frame's
// end by decoding it into e, which saves a scan for it.
func (f *jsonFramer) next(e *Event) (frame []byte, decoded bool, err error) {
	if err := f.findStart(); err != nil {
		return nil, false, err
	}
	// A complete event has a newline after it. An incomplete one would be decoded in vain.
	if e != nil && f.scanned == f.start && bytes.IndexByte(f.buf[f.start:f.end], '\n') >= 0 {
		if end, err := e.decodeFirst(f.buf[f.start:f.end]); err == nil && end <= f.max {
			f.start += end
			return e.frame, true, nil
		}
	}
	frame, err = f.cut()
	return frame, false, err
}

// findStart moves f.start to the first byte of a frame.
func (f *jsonFramer) findStart() error {
	if f.scan.Within() {
		return nil
	}
	for f.start < f.end && scan.IsSpace(f.buf[f.start]) {
		f.start++
	}
	f.scanned = f.start
	if f.start < f.end && f.buf[f.start] != '{' {
		return fmt.Errorf("watchcodec: byte %q at offset %d begins no JSON object", f.buf[f.start], f.offset+int64(f.start))
	}
	return nil
}

// cut returns the next frame if the buffer holds all of it, else nil.
func (f *jsonFramer) cut() ([]byte, error) {
	n, complete := f.scan.Skip(f.buf[f.scanned:f.end])
	f.scanned += n
	if f.scanned-f.start > f.max {
		return nil, ErrFrameTooLarge
	}
	if !complete {
		return nil, nil
	}
	frame := f.buf[f.start:f.scanned:f.scanned]
	f.start, f.scan = f.scanned, scan.Scanner{}
	return frame, nil
}

// room implements framer.
func (f *jsonFramer) room() ([]byte, error) {
	if f.start > 0 {
		copy(f.buf, f.buf[f.start:f.end])
		f.offset += int64(f.start)
		f.end -= f.start
		f.scanned -= f.start
		f.start = 0
	}
	if f.end == len(f.buf) {
		if len(f.buf) > f.max {
			return nil, ErrFrameTooLarge
		}
		f.enlarge(f.max + 1)
	}
	return f.buf[f.end:], nil
}

// received implements framer.
func (f *jsonFramer) received(n int) {
	if f.end += n; f.end == len(f.buf) {
		f.enlarge(busyBuffer) // the source has more than fits: frames are cut faster if several are buffered
	}
}

// within implements framer.
func (f *jsonFramer) within() bool { return f.scan.Within() }

// busyBuffer bounds the buffer of a stream of small frames. A larger buffer ends within fewer
// frames: a frame that the buffer's end cuts is scanned twice in part.
const busyBuffer = 256 << 10

func (f *jsonFramer) enlarge(most int) {
	if n := min(2*len(f.buf), most, f.max+1); n > len(f.buf) {
		grown := make([]byte, n)
		copy(grown, f.buf[:f.end])
		f.buf = grown
	}
}
