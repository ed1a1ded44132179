package watchcodec

import (
	"encoding/binary"
	"io"
)

// ProtobufReader cuts a watch in protobuf into frames: four bytes of length, big endian,
// then the frame (k8s.io/apimachinery/pkg/util/framer).
//
// A ProtobufReader must not be used by several goroutines at once.
type ProtobufReader struct {
	src  io.Reader
	max  int
	buf  []byte
	from int // buf[from:to] was read and not returned
	to   int
	err  error
}

// NewProtobufReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. The memory that it holds grows with the largest frame that it has met,
// and not with what a length claims.
func NewProtobufReader(src io.Reader, maxFrame int) *ProtobufReader {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	return &ProtobufReader{src: src, max: maxFrame, buf: make([]byte, 4<<10)}
}

// Next returns the next frame, without its length. The bytes are valid until the next
// call.
//
// At the end of the stream the error is io.EOF, within a frame io.ErrUnexpectedEOF; a
// frame over the limit is ErrFrameTooLarge. An error stays.
func (r *ProtobufReader) Next() ([]byte, error) {
	for r.err == nil {
		pending := r.buf[r.from:r.to]
		if len(pending) < 4 {
			if r.err = r.fill(4); r.err == errMore {
				r.err = nil
				return nil, errMore
			}
			continue
		}
		n := int64(binary.BigEndian.Uint32(pending))
		switch {
		case n > int64(r.max):
			r.err = ErrFrameTooLarge
		case int64(len(pending)) < 4+n:
			if r.err = r.fill(int(4 + n)); r.err == errMore {
				r.err = nil
				return nil, errMore
			}
		default:
			r.from += int(4 + n)
			return pending[4 : 4+n : 4+n], nil
		}
	}
	return nil, r.err
}

// fill reads once, after it has made room for a frame of n bytes, or for twice of what has
// come of it.
func (r *ProtobufReader) fill(n int) error {
	if r.from > 0 {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	if r.to == len(r.buf) {
		grown := make([]byte, min(2*len(r.buf), max(n, len(r.buf)+1)))
		copy(grown, r.buf)
		r.buf = grown
	}
	read, err := r.src.Read(r.buf[r.to:])
	r.to += read
	switch {
	case read > 0:
		return nil // an error that came with bytes comes again
	case err == io.EOF && r.to > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}
