package watchcodec

import "io"

// JSONReader splits a stream of concatenated JSON objects into frames, one object each, compact or
// over several lines, however the reads are split. It looks for the end of an object only and does
// not validate its content.
//
// A JSONReader must not be used by several goroutines at the same time.
type JSONReader struct {
	src    io.Reader
	frames jsonFramer
	err    error
}

// NewJSONReader returns a reader of src with frames of at most maxFrame bytes; 0 means
// DefaultMaxFrame. Its memory grows with the largest frame read so far.
func NewJSONReader(src io.Reader, maxFrame int) *JSONReader {
	return &JSONReader{src: src, frames: makeJSONFramer(maxFrame)}
}

// Next returns the next frame, from its opening to its closing brace. The bytes are valid until the
// next call.
//
// The error is io.EOF at the end of the stream, io.ErrUnexpectedEOF if that is within a frame, and
// ErrFrameTooLarge for a frame over the limit. Anything but white space between frames is an error,
// too, which names the byte and its offset. After an error, every call returns that error.
func (r *JSONReader) Next() (frame []byte, err error) {
	if r.err == nil {
		frame, _, r.err = pull(&r.frames, r.src, nil)
	}
	return frame, r.err
}
