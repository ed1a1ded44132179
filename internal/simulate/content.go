package simulate

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Content is a body that identifies its stream: each eight bytes of it hold the stream's
// name and their position, so that a reader notices bytes that are missing, doubled or
// from another stream.
type Content struct {
	Stream uint32
	Length int64
}

const unit = 8

// unit writes the ith unit of the content into b.
func (c Content) unit(b *[unit]byte, i int64) {
	binary.BigEndian.PutUint32(b[:4], c.Stream)
	binary.BigEndian.PutUint32(b[4:], uint32(i))
}

// ReadAt fills p with the content at off.
func (c Content) fill(p []byte, off int64) {
	var b [unit]byte
	for i := 0; i < len(p); {
		at := off + int64(i)
		c.unit(&b, at/unit)
		i += copy(p[i:], b[at%unit:])
	}
}

// Bytes returns the bytes from off to end.
func (c Content) Bytes(off, end int64) []byte {
	p := make([]byte, max(0, end-off))
	c.fill(p, off)
	return p
}

// Checker reads a body and compares it with a content.
type Checker struct {
	Closed bool // in a tunnel: a Close frame was received
	Content
	Got int64
	bad error
}

// Write compares p with the expected bytes.
func (k *Checker) Write(p []byte) (int, error) {
	var b [unit]byte
	for i, v := range p {
		at := k.Got + int64(i)
		if i == 0 || at%unit == 0 {
			k.unit(&b, at/unit)
		}
		if v != b[at%unit] && k.bad == nil {
			k.bad = fmt.Errorf("byte %d is %#02x, want %#02x: not those of stream %d", at, v, b[at%unit], k.Stream)
		}
	}
	k.Got += int64(len(p))
	if k.Got > k.Length && k.bad == nil {
		k.bad = fmt.Errorf("%d bytes, want %d", k.Got, k.Length)
	}
	return len(p), nil
}

// Err returns the first difference.
func (k *Checker) Err() error { return k.bad }

// Whole reports whether all of the content was received.
func (k *Checker) Whole() bool { return k.Got == k.Length && k.bad == nil }

// Reader reads the content, in pieces of at most step bytes, 0 for any.
func (c Content) Reader() io.Reader { return io.NewSectionReader(contentAt{c}, 0, c.Length) }

type contentAt struct{ Content }

// ReadAt implements io.ReaderAt.
func (c contentAt) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(int64(len(p)), c.Length-off))
	if n <= 0 {
		return 0, io.EOF
	}
	c.fill(p[:n], off)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
