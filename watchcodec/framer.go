package watchcodec

import (
	"errors"
	"io"
	"math"
)

// DefaultMaxFrame is the default limit of a frame, in bytes: 16 MiB. An object in etcd has at most
// 1.5 MiB unless its limit was raised.
const DefaultMaxFrame = 16 << 20

// ErrFrameTooLarge is the error of a frame over the limit.
var ErrFrameTooLarge = errors.New("watchcodec: frame over the limit")

// framer splits a stream into frames. It holds the memory for them: the stream is put there by the
// framer's user, who either reads it from a source (pull) or is called with its pieces (push).
type framer interface {
	// next returns the next frame, which is valid until the next call of a method, or nil if more of
	// the stream is needed for that. If e is not nil, next may decode the frame into it, and decoded
	// reports whether it did.
	next(e *Event) (frame []byte, decoded bool, err error)
	// room returns where the next bytes of the stream are put.
	room() ([]byte, error)
	// received is called with the number of bytes that were put into room.
	received(n int)
	// within reports whether a part of a frame was received and the rest was not.
	within() bool
}

// newFramer returns a framer for frames of at most maxFrame bytes; 0 means DefaultMaxFrame.
func newFramer(f Format, maxFrame int) framer {
	if f == Protobuf {
		frames := makeProtobufFramer(maxFrame)
		return &frames
	}
	frames := makeJSONFramer(maxFrame)
	return &frames
}

// frameLimit returns a limit to which a few bytes can be added.
func frameLimit(maxFrame int) int {
	if maxFrame <= 0 {
		return DefaultMaxFrame
	}
	return min(maxFrame, math.MaxInt-8)
}

// pull returns the next frame of src, as framer.next does. The error is io.EOF at the end of src,
// io.ErrUnexpectedEOF if that is within a frame.
func pull(f framer, src io.Reader, e *Event) (frame []byte, decoded bool, err error) {
	for {
		if frame, decoded, err = f.next(e); frame != nil || err != nil {
			return frame, decoded, err
		}
		room, err := f.room()
		if err != nil {
			return nil, false, err
		}
		n, err := src.Read(room)
		f.received(n)
		switch {
		case n > 0: // an error that came with bytes is returned again by the next Read
		case err == io.EOF && f.within():
			return nil, false, io.ErrUnexpectedEOF
		case err != nil:
			return nil, false, err
		}
	}
}

// push adds p to the stream, and calls take with each frame that is complete then, see framer.next.
func push(f framer, p []byte, e *Event, take func(frame []byte, decoded bool) error) error {
	for {
		frame, decoded, err := f.next(e)
		switch {
		case err != nil:
			return err
		case frame != nil:
			if err := take(frame, decoded); err != nil {
				return err
			}
			continue
		case len(p) == 0:
			return nil
		}
		room, err := f.room()
		if err != nil {
			return err
		}
		n := copy(room, p)
		f.received(n)
		p = p[n:]
	}
}
