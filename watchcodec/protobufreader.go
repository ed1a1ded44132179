package watchcodec

import (
	"encoding/binary"
	"io"
)

// ProtobufReader splits a watch in protobuf into frames: four bytes of length, big endian, then the
// frame (k8s.io/apimachinery/pkg/util/framer).
//
// A ProtobufReader must not be used by several goroutines at the same time.
type ProtobufReader struct {
	src  io.Reader
	max  int
	buf  []byte
	from int // buf[from:to] was read and not returned
	to   int
	err  error
}

// NewProtobufReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. Its memory grows with the largest frame read so far, and not with the length
// that a frame claims.
func NewProtobufReader(src io.Reader, maxFrame int) *ProtobufReader {
	if maxFrame <= 0 {
		maxFrame = DefaultMaxFrame
	}
	return &ProtobufReader{src: src, max: maxFrame, buf: make([]byte, 4<<10)}
}

// Next returns the next frame, without its length. The bytes are valid until the next call.
//
// The error is io.EOF at the end of the stream, io.ErrUnexpectedEOF if that is within a frame, and
// ErrFrameTooLarge for a frame over the limit. After an error, every call returns that error.
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

// fill makes room for a frame of n bytes, but for no more than twice the bytes received of it, and
// reads once.
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
		return nil // an error that came with bytes is returned again by the next Read
	case err == io.EOF && r.to > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}
