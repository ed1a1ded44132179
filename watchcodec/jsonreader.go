package watchcodec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxFrame is the limit of a frame in bytes that NewJSONReader takes for
// 0: 16 MiB. An object in etcd has at most 1.5 MiB unless the limit was raised.
const DefaultMaxFrame = 16 << 20

// ErrFrameTooLarge is the error of a frame over the limit.
var ErrFrameTooLarge = errors.New("watchcodec: frame over the limit")

// SyntaxError is the error of bytes that can't begin a frame.
type SyntaxError struct {
	// Offset is the place in the stream, in bytes.
	Offset int64
	// Byte is what stands there.
	Byte byte
}

// Error tells the byte and where it stands.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("watchcodec: byte %q at offset %d begins no JSON object", e.Byte, e.Offset)
}

// JSONReader cuts a stream of concatenated JSON objects into frames, one object
// each, compact or over several lines, however the reads fall. It looks for the
// end of an object and at nothing else: what is inside is not validated.
//
// A JSONReader must not be used by several goroutines at once.
type JSONReader struct {
	src     io.Reader
	max     int
	buf     []byte // buf[start:end] is what was read and not returned
	start   int
	end     int
	scanned int   // buf[start:scanned] has been looked at
	offset  int64 // of buf[0] in the stream
	scan    scanner
	err     error
}

// NewJSONReader returns a reader of src with frames of at most maxFrame bytes; 0
// means DefaultMaxFrame. The memory that it holds grows with the largest frame
// that it has met.
func NewJSONReader(src io.Reader, maxFrame int) *JSONReader {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	return &JSONReader{src: src, max: maxFrame, buf: make([]byte, min(4<<10, maxFrame))}
}

// Next returns the next frame, from its opening to its closing brace. The bytes
// are valid until the next call.
//
// At the end of the stream the error is io.EOF, within a frame
// io.ErrUnexpectedEOF; a frame over the limit is ErrFrameTooLarge, anything but
// white space between frames a *SyntaxError. An error stays.
func (r *JSONReader) Next() ([]byte, error) {
	frame, _, err := r.next(nil)
	return frame, err
}

// next returns the next frame. If e is not nil and the frame is at hand as a whole, it is
// cut by taking it apart, which spares looking for its end before.
func (r *JSONReader) next(e *Event) (frame []byte, decoded bool, err error) {
	for r.err == nil {
		// An event that has come as a whole has a newline behind it; one that has not would
		// be gone through in vain.
		if r.err = r.begin(); r.err == nil && e != nil && r.scanned == r.start && bytes.IndexByte(r.buf[r.start:r.end], '\n') >= 0 {
			if end, err := e.decodeFirst(r.buf[r.start:r.end]); err == nil && end <= r.max {
				r.start += end
				return e.frame, true, nil
			}
		}
		if frame := r.cut(); frame != nil {
			return frame, false, nil
		}
		if r.err == nil {
			if r.err = r.fill(); r.err == errMore {
				r.err = nil
				return nil, false, errMore
			}
		}
	}
	return nil, false, r.err
}

// begin goes to the first byte of a frame.
func (r *JSONReader) begin() error {
	if r.scan.depth > 0 {
		return nil
	}
	for r.start < r.end && isSpace(r.buf[r.start]) {
		r.start++
	}
	r.scanned = r.start
	if r.start < r.end && r.buf[r.start] != '{' {
		return &SyntaxError{r.offset + int64(r.start), r.buf[r.start]}
	}
	return nil
}

// cut returns the next frame if the buffer holds all of it.
func (r *JSONReader) cut() []byte {
	if r.err != nil {
		return nil
	}
	n, complete := r.scan.skip(r.buf[r.scanned:r.end])
	r.scanned += n
	if r.scanned-r.start > r.max {
		r.err = ErrFrameTooLarge
		return nil
	}
	if !complete {
		return nil
	}
	frame := r.buf[r.start:r.scanned:r.scanned]
	r.start, r.scan = r.scanned, scanner{}
	return frame
}

// fill reads once, after it has made room.
func (r *JSONReader) fill() error {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.offset += int64(r.start)
		r.end -= r.start
		r.scanned -= r.start
		r.start = 0
	}
	if r.end == len(r.buf) {
		if len(r.buf) > r.max {
			return ErrFrameTooLarge
		}
		r.enlarge(r.max + 1)
	}
	n, err := r.src.Read(r.buf[r.end:])
	if r.end += n; r.end == len(r.buf) {
		r.enlarge(busyBuffer) // there is more than fits: frames are cut faster where several are at hand
	}
	switch {
	case n > 0:
		return nil // an error that came with bytes comes again
	case err == io.EOF && r.scan.depth > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}

// busyBuffer is what a reader holds at most of a stream of small frames. Of those that the
// buffer's end cuts, part is gone through twice.
const busyBuffer = 256 << 10

func (r *JSONReader) enlarge(most int) {
	if n := min(2*len(r.buf), most, r.max+1); n > len(r.buf) {
		grown := make([]byte, n)
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }
