package watchcodec

import "encoding/binary"

// protobufFramer splits a stream of frames that have their length before them.
type protobufFramer struct {
	max  int
	buf  []byte
	from int // buf[from:to] was received and not returned
	to   int
	need int // the size of the next frame with its length, as far as it is known
}

func makeProtobufFramer(maxFrame int) protobufFramer {
	return protobufFramer{max: frameLimit(maxFrame), buf: make([]byte, 4<<10)}
}

// lengthSize is the size of the length before a frame.
const lengthSize = 4

// next implements framer.
func (f *protobufFramer) next(*Event) (frame []byte, decoded bool, err error) {
	pending := f.buf[f.from:f.to]
	if f.need = lengthSize; len(pending) < f.need {
		return nil, false, nil
	}
	n := int64(binary.BigEndian.Uint32(pending))
	if n > int64(f.max) {
		return nil, false, ErrFrameTooLarge
	}
	if f.need += int(n); len(pending) < f.need {
		return nil, false, nil
	}
	f.from += f.need
	return pending[lengthSize:f.need:f.need], false, nil
}

// room implements framer. It makes room for the next frame, but for no more than twice the bytes
// received of it.
func (f *protobufFramer) room() ([]byte, error) {
	if f.from > 0 {
		f.to = copy(f.buf, f.buf[f.from:f.to])
		f.from = 0
	}
	if f.to == len(f.buf) {
		grown := make([]byte, min(2*len(f.buf), max(f.need, len(f.buf)+1)))
		copy(grown, f.buf)
		f.buf = grown
	}
	return f.buf[f.to:], nil
}

// received implements framer.
func (f *protobufFramer) received(n int) { f.to += n }

// within implements framer.
func (f *protobufFramer) within() bool { return f.to > f.from }
