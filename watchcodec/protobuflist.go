package watchcodec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// Field numbers of every list (ListMeta is its metadata).
const (
	listMetadata, listItems = 1, 2
	listRemainingItemCount  = 4
)

// protobufListWriter takes a list in protobuf and sends the part that the client sees. That part is
// held until the end, since its length is sent first; hidden items are not held.
type protobufListWriter struct {
	w         io.Writer
	x         *exchange
	carry     []byte // the beginning of the next field
	need      int    // the number of bytes that state needs of the field
	state     func(l *protobufListWriter, p []byte) (used, need int, err error)
	envelope  envelope
	head      []byte // the envelope before the list
	tail      []byte // the envelope after the list
	remaining int    // remaining bytes of the list
	item      Object
	scratch   []byte
	out       chunks
	info      *listInfo
	err       error
}

func newProtobufListWriter(w io.Writer, x *exchange) *protobufListWriter {
	return &protobufListWriter{w: w, x: x, state: (*protobufListWriter).takeMagic}
}

func (l *protobufListWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && l.err == nil; {
		rest = l.take(rest)
	}
	if l.err != nil {
		return 0, l.err
	}
	return len(p), nil
}

// take consumes the first field of p, or as much of it as there is, and returns the rest.
func (l *protobufListWriter) take(p []byte) (rest []byte) {
	var used int
	if len(l.carry) == 0 {
		if used, l.need, l.err = l.state(l, p); used > 0 || l.err != nil {
			return p[used:]
		}
	}
	if l.need > l.x.o.MaxObject {
		l.err = errTooLarge
		return nil
	}
	n := min(len(p), l.need-len(l.carry))
	l.carry = append(l.carry, p[:n]...)
	if len(l.carry) == l.need {
		if used, l.need, l.err = l.state(l, l.carry); used > 0 {
			l.carry = l.carry[:0]
		}
	}
	return p[n:]
}

// The states consume the field that p begins with. While the field is incomplete they consume
// nothing, and return the number of bytes that they need.

func (l *protobufListWriter) takeMagic(p []byte) (used, need int, err error) {
	if len(p) < len(magic) {
		return 0, len(magic), nil
	}
	if string(p[:len(magic)]) != magic {
		return 0, 0, fmt.Errorf("%w: no Kubernetes object", scan.ErrProtobuf)
	}
	l.head = append(l.head, magic...)
	l.state = (*protobufListWriter).takeBefore
	return len(magic), 0, nil
}

// takeBefore consumes the fields of the envelope before the list.
func (l *protobufListWriter) takeBefore(p []byte) (used, need int, err error) {
	number, at, size, err := scan.FieldPrefix(p)
	switch {
	case err != nil:
		return 0, 0, err
	case at == 0:
		return 0, len(p) + 1, nil
	case number != unknownRaw:
		return l.takeAround(&l.head, p)
	}
	kind := l.envelope.kind
	single, isList := bytes.CutSuffix(kind, []byte("List"))
	l.state = (*protobufListWriter).takeField
	switch {
	case string(kind) == "Status":
		l.state = (*protobufListWriter).takeStatus
	case !isList:
		return 0, 0, fmt.Errorf("watchcodec: a %s in the place of a list", kind)
	}
	l.item.kind, l.item.apiVersion = single, l.envelope.apiVersion
	l.remaining = size
	if size == 0 {
		l.state = (*protobufListWriter).takeAfter
	}
	l.envelope.seen |= 1 << unknownRaw
	if l.info != nil {
		l.info.kind, l.info.apiVersion = string(kind), string(l.envelope.apiVersion)
	}
	return at, 0, nil
}

// takeAfter consumes the fields of the envelope after the list.
func (l *protobufListWriter) takeAfter(p []byte) (used, need int, err error) {
	return l.takeAround(&l.tail, p)
}

func (l *protobufListWriter) takeAround(kept *[]byte, p []byte) (used, need int, err error) {
	_, at, size, err := scan.FieldPrefix(p)
	switch {
	case err != nil:
		return 0, 0, err
	case at == 0:
		return 0, len(p) + 1, nil
	case size > len(p)-at:
		return 0, at + size, nil
	}
	*kept = append(*kept, p[:at+size]...)
	field := (*kept)[len(*kept)-at-size:]
	f, err := scan.NextField(field, 0)
	if err == nil {
		err = l.envelope.add(bytes.Clone(field), f) // kept may be reallocated
	}
	return at + size, 0, err
}

// takeStatus consumes a Status in place of a list.
func (l *protobufListWriter) takeStatus(p []byte) (used, need int, err error) {
	n := min(len(p), l.remaining)
	l.advance(n)
	return n, 0, l.keep(p[:n])
}

// takeField consumes a field of the list.
func (l *protobufListWriter) takeField(p []byte) (used, need int, err error) {
	p = p[:min(len(p), l.remaining)]
	number, at, size, err := scan.FieldPrefix(p)
	whole := at + size
	switch {
	case err != nil:
		return 0, 0, err
	case whole > l.remaining || at == 0 && len(p) == l.remaining:
		return 0, 0, scan.ErrProtobuf
	case at == 0:
		return 0, len(p) + 1, nil
	case whole > len(p):
		return 0, whole, nil
	}
	l.advance(whole)
	switch f, err := scan.NextField(p, 0); {
	case err != nil:
		return 0, 0, err
	case number == listMetadata && f.Wire == scan.WireBytes:
		return whole, 0, l.metadata(f.Value.Of(p))
	case number == listItems && f.Wire == scan.WireBytes:
		return whole, 0, l.rewrite(p[:whole], f.Value.Of(p))
	}
	return 0, 0, fmt.Errorf("%w: the field %d of a list", scan.ErrProtobuf, number)
}

func (l *protobufListWriter) advance(n int) {
	if l.remaining -= n; l.remaining == 0 {
		l.state = (*protobufListWriter).takeAfter
	}
}

func (l *protobufListWriter) metadata(p []byte) (err error) {
	if l.info != nil {
		l.info.meta = bytes.Clone(p)
	}
	e := Delete(Field{Name: "remainingItemCount", Number: listRemainingItemCount})
	l.scratch, err = scan.AppendNested(l.scratch[:0], listMetadata, len(p), func(b []byte) ([]byte, error) {
		return e.protobuf(b, p, e.path)
	})
	return firstOf(err, l.keep(l.scratch))
}

// rewrite rewrites an item p. whole is its field.
func (l *protobufListWriter) rewrite(whole, p []byte) error {
	item := &l.item
	kind, apiVersion := item.kind, item.apiVersion
	item.reset(Protobuf)
	item.kind, item.apiVersion = kind, apiVersion
	if err := item.parseProtobuf(p); err != nil {
		return err
	}
	visible, err := l.x.rewrite(item)
	switch {
	case err != nil || !visible:
		return err
	case !item.edited:
		return l.keep(whole)
	}
	l.scratch = binary.AppendUvarint(append(l.scratch[:0], listItems<<3|scan.WireBytes), uint64(len(item.raw)))
	return firstOf(l.keep(l.scratch), l.keep(item.raw))
}

// keep holds bytes for the client.
func (l *protobufListWriter) keep(p []byte) error {
	if l.out.size+len(p) > l.x.o.MaxList {
		return errTooLarge
	}
	l.out.add(p)
	return nil
}

func (l *protobufListWriter) Close() error {
	defer l.out.free()
	switch {
	case l.err != nil:
		return l.err
	case l.remaining > 0 || len(l.carry) > 0 || l.envelope.seen&(1<<unknownRaw) == 0:
		return io.ErrUnexpectedEOF
	}
	head := binary.AppendUvarint(append(l.head, unknownRaw<<3|scan.WireBytes), uint64(l.out.size))
	if _, err := l.w.Write(head); err != nil {
		return err
	}
	for _, part := range append(l.out.full, l.out.last, l.tail) {
		if _, err := l.w.Write(part); err != nil {
			return err
		}
	}
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
