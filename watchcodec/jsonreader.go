package watchcodec

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// DefaultMaxFrame is the default limit of a frame, in bytes: 16 MiB. An object in etcd has at most
// 1.5 MiB unless its limit was raised.
const DefaultMaxFrame = 16 << 20

// ErrFrameTooLarge is the error of a frame over the limit.
var ErrFrameTooLarge = errors.New("watchcodec: frame over the limit")

// SyntaxError is the error of a byte that can't begin a frame.
type SyntaxError struct {
	// Offset is the byte's offset in the stream.
	Offset int64
	// Byte is the byte at Offset.
	Byte byte
}

// Error returns a message with the byte and its offset.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("watchcodec: byte %q at offset %d begins no JSON object", e.Byte, e.Offset)
}

// JSONReader splits a stream of concatenated JSON objects into frames, one object each, compact or
// over several lines, however the reads are split. It looks for the end of an object only and does
// not validate its content.
//
// A JSONReader must not be used by several goroutines at the same time.
type JSONReader struct {
	src     io.Reader
	max     int
	buf     []byte // buf[start:end] was read and not returned
	start   int
	end     int
	scanned int   // buf[start:scanned] was scanned
	offset  int64 // of buf[0] in the stream
	scan    scan.Scanner
	err     error
}

// NewJSONReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. Its memory grows with the largest frame read so far.
func NewJSONReader(src io.Reader, maxFrame int) *JSONReader {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	return &JSONReader{src: src, max: maxFrame, buf: make([]byte, min(4<<10, maxFrame))}
}

// Next returns the next frame, from its opening to its closing brace. The bytes are valid until the
// next call.
//
// The error is io.EOF at the end of the stream, io.ErrUnexpectedEOF if that is within a frame,
// ErrFrameTooLarge for a frame over the limit, and a *SyntaxError for anything but white space
// between frames. After an error, every call returns that error.
func (r *JSONReader) Next() ([]byte, error) {
	frame, _, err := r.next(nil)
	return frame, err
}

// next returns the next frame. If e is not nil and the whole frame is buffered, next finds the
// frame's end by decoding it into e, which saves a scan for it.
func (r *JSONReader) next(e *Event) (frame []byte, decoded bool, err error) {
	for r.err == nil {
		// A complete event has a newline after it. An incomplete one would be decoded in vain.
		if r.err = r.findStart(); r.err == nil && e != nil && r.scanned == r.start && bytes.IndexByte(r.buf[r.start:r.end], '\n') >= 0 {
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

// findStart moves r.start to the first byte of a frame.
func (r *JSONReader) findStart() error {
	if r.scan.Within() {
		return nil
	}
	for r.start < r.end && scan.IsSpace(r.buf[r.start]) {
		r.start++
	}
	r.scanned = r.start
	if r.start < r.end && r.buf[r.start] != '{' {
		return &SyntaxError{r.offset + int64(r.start), r.buf[r.start]}
	}
	return nil
}

// cut returns the next frame if the buffer holds all of it, else nil.
func (r *JSONReader) cut() []byte {
	if r.err != nil {
		return nil
	}
	n, complete := r.scan.Skip(r.buf[r.scanned:r.end])
	r.scanned += n
	if r.scanned-r.start > r.max {
		r.err = ErrFrameTooLarge
		return nil
	}
	if !complete {
		return nil
	}
	frame := r.buf[r.start:r.scanned:r.scanned]
	r.start, r.scan = r.scanned, scan.Scanner{}
	return frame
}

// fill makes room and reads once.
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
		r.enlarge(busyBuffer) // the source has more than fits: frames are cut faster if several are buffered
	}
	switch {
	case n > 0:
		return nil // an error that came with bytes is returned again by the next Read
	case err == io.EOF && r.scan.Within():
		return io.ErrUnexpectedEOF
	}
	return err
}

// busyBuffer bounds the buffer of a reader of small frames. A larger buffer ends within fewer
// frames: a frame that the buffer's end cuts is scanned twice in part.
const busyBuffer = 256 << 10

func (r *JSONReader) enlarge(most int) {
	if n := min(2*len(r.buf), most, r.max+1); n > len(r.buf) {
		grown := make([]byte, n)
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
}
