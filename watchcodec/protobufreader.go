package watchcodec

import "io"

// ProtobufReader splits a watch in protobuf into frames: four bytes of length, big endian, then the
// frame (k8s.io/apimachinery/pkg/util/framer).
//
// A ProtobufReader must not be used by several goroutines at the same time.
type ProtobufReader struct {
	src    io.Reader
	frames protobufFramer
	err    error
}

// NewProtobufReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. Its memory grows with the largest frame read so far, and not with the length
// that a frame claims.
func NewProtobufReader(src io.Reader, maxFrame int) *ProtobufReader {
	return &ProtobufReader{src: src, frames: makeProtobufFramer(maxFrame)}
}

// Next returns the next frame, without its length. The bytes are valid until the next call.
//
// The error is io.EOF at the end of the stream, io.ErrUnexpectedEOF if that is within a frame, and
// ErrFrameTooLarge for a frame over the limit. After an error, every call returns that error.
func (r *ProtobufReader) Next() (frame []byte, err error) {
	if r.err == nil {
		frame, _, r.err = pull(&r.frames, r.src, nil)
	}
	return frame, r.err
}
