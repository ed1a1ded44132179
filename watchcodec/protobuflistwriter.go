package watchcodec

import (
	"encoding/binary"
	"io"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// protobufListWriter sends the part of a list in protobuf that the client sees. That part is held
// until the end, since its length is sent first; hidden items are not held.
type protobufListWriter struct {
	w       io.Writer
	x       *exchange
	list    protobufListParser
	scratch []byte
	out     chunks
}

func newProtobufListWriter(w io.Writer, x *exchange) *protobufListWriter {
	l := &protobufListWriter{w: w, x: x}
	l.list.init(l, x.listRules())
	return l
}

func (l *protobufListWriter) Write(p []byte) (int, error) { return l.list.Write(p) }

// Close sends the list. If the list has not ended, Close sends nothing and fails.
func (l *protobufListWriter) Close() error {
	defer l.out.free()
	if err := l.list.Close(); err != nil {
		return err
	}
	head := binary.AppendUvarint(append(l.list.head, unknownRaw<<3|scan.WireBytes), uint64(l.out.size))
	if _, err := l.w.Write(head); err != nil {
		return err
	}
	for _, part := range append(l.out.full, l.out.last, l.list.tail) {
		if _, err := l.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// verbatim implements listParts.
func (l *protobufListWriter) verbatim(p []byte) error { return l.keep(p) }

// metadata implements listParts. It removes the number of the items on later pages, which would
// reveal how many are hidden.
func (l *protobufListWriter) metadata(p []byte) (err error) {
	e := Delete(Field{Name: "remainingItemCount", Number: listRemainingItemCount})
	l.scratch, err = scan.AppendNested(l.scratch[:0], listMetadata, len(p), func(b []byte) ([]byte, error) {
		return e.protobuf(b, p, e.path)
	})
	return firstOf(err, l.keep(l.scratch))
}

// item implements listParts.
func (l *protobufListWriter) item(before []byte, o *Object, _ *row) error {
	visible, err := l.x.rewrite(o)
	if err != nil || !visible {
		return err
	}
	if o.edited {
		l.scratch = binary.AppendUvarint(append(l.scratch[:0], listItems<<3|scan.WireBytes), uint64(len(o.raw)))
		before = l.scratch
	}
	return firstOf(l.keep(before), l.keep(o.raw))
}

// keep holds bytes for the client.
func (l *protobufListWriter) keep(p []byte) error {
	if l.out.size+len(p) > l.x.o.MaxList {
		return errTooLarge
	}
	l.out.add(p)
	return nil
}

// chunks holds bytes in pooled buffers.
type chunks struct {
	full [][]byte
	last []byte
	size int
}

func (c *chunks) add(p []byte) {
	for c.size += len(p); len(p) > 0; {
		if len(c.last) == cap(c.last) {
			if c.last != nil {
				c.full = append(c.full, c.last)
			}
			c.last = bufpool.GetFor(1 << 20)[:0]
		}
		n := copy(c.last[len(c.last):cap(c.last)], p)
		c.last, p = c.last[:len(c.last)+n], p[n:]
	}
}

func (c *chunks) free() {
	for _, b := range append(c.full, c.last) {
		bufpool.Put(b[:cap(b)])
	}
	*c = chunks{}
}
