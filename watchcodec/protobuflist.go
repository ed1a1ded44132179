package watchcodec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// Fields of every list (ListMeta is its metadata).
const (
	listMetadata, listItems = 1, 2
	listRemainingItemCount  = 4
)

// protobufListWriter takes a list in protobuf and sends what the client sees of it. The
// length of what is sent comes first there, so that is held until the end; what the client
// does not see is not.
type protobufListWriter struct {
	w        io.Writer
	a        *answer
	carry    []byte // the beginning of the next field
	need     int    // what has to be known of the field, or what is known to be
	state    func(l *protobufListWriter, p []byte) (used, need int, err error)
	envelope envelope
	head     []byte // of the envelope, before the list
	tail     []byte // and behind it
	left     int    // of the list
	item     Object
	scratch  []byte
	out      chunks
	told     *listHead
	ended    error
}

func newProtobufListWriter(w io.Writer, a *answer) *protobufListWriter {
	return &protobufListWriter{w: w, a: a, state: (*protobufListWriter).begin}
}

func (l *protobufListWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && l.ended == nil; {
		rest = l.take(rest)
	}
	if l.ended != nil {
		return 0, l.ended
	}
	return len(p), nil
}

// take takes the first field of p, or as much as there is of it, and returns the rest.
func (l *protobufListWriter) take(p []byte) (rest []byte) {
	var used int
	if len(l.carry) == 0 {
		if used, l.need, l.ended = l.state(l, p); used > 0 || l.ended != nil {
			return p[used:]
		}
	}
	if l.need > l.a.o.MaxObject {
		l.ended = errTooLarge
		return nil
	}
	n := min(len(p), l.need-len(l.carry))
	l.carry = append(l.carry, p[:n]...)
	if len(l.carry) == l.need {
		if used, l.need, l.ended = l.state(l, l.carry); used > 0 {
			l.carry = l.carry[:0]
		}
	}
	return p[n:]
}

// The states take the field that p begins with. As long as that is not there as a whole
// they use nothing, and say how many bytes they need.

func (l *protobufListWriter) begin(p []byte) (used, need int, err error) {
	if len(p) < len(magic) {
		return 0, len(magic), nil
	}
	if string(p[:len(magic)]) != magic {
		return 0, 0, fmt.Errorf("%w: no Kubernetes object", errProtobuf)
	}
	l.head = append(l.head, magic...)
	l.state = (*protobufListWriter).before
	return len(magic), 0, nil
}

// before takes the fields of the envelope before the list.
func (l *protobufListWriter) before(p []byte) (used, need int, err error) {
	number, at, size, err := fieldHead(p)
	switch {
	case err != nil:
		return 0, 0, err
	case at == 0:
		return 0, len(p) + 1, nil
	case number != unknownRaw:
		return l.around(&l.head, p)
	}
	kind := l.envelope.kind
	single, isList := bytes.CutSuffix(kind, []byte("List"))
	l.state = (*protobufListWriter).field
	switch {
	case string(kind) == "Status":
		l.state = (*protobufListWriter).status
	case !isList:
		return 0, 0, fmt.Errorf("watchcodec: a %s in the place of a list", kind)
	}
	l.item.kind, l.item.apiVersion = single, l.envelope.apiVersion
	l.left = size
	if size == 0 {
		l.state = (*protobufListWriter).behind
	}
	l.envelope.seen |= 1 << unknownRaw
	if l.told != nil {
		l.told.kind, l.told.apiVersion = string(kind), string(l.envelope.apiVersion)
	}
	return at, 0, nil
}

// behind takes the fields of the envelope behind the list.
func (l *protobufListWriter) behind(p []byte) (used, need int, err error) {
	return l.around(&l.tail, p)
}

func (l *protobufListWriter) around(kept *[]byte, p []byte) (used, need int, err error) {
	_, at, size, err := fieldHead(p)
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
	f, err := nextField(field, 0)
	if err == nil {
		err = l.envelope.add(bytes.Clone(field), f) // kept may move
	}
	return at + size, 0, err
}

// status takes what is in the place of a list.
func (l *protobufListWriter) status(p []byte) (used, need int, err error) {
	n := min(len(p), l.left)
	l.advance(n)
	return n, 0, l.keep(p[:n])
}

// field takes a field of the list.
func (l *protobufListWriter) field(p []byte) (used, need int, err error) {
	p = p[:min(len(p), l.left)]
	number, at, size, err := fieldHead(p)
	whole := at + size
	switch {
	case err != nil:
		return 0, 0, err
	case whole > l.left || at == 0 && len(p) == l.left:
		return 0, 0, errProtobuf
	case at == 0:
		return 0, len(p) + 1, nil
	case whole > len(p):
		return 0, whole, nil
	}
	l.advance(whole)
	switch f, err := nextField(p, 0); {
	case err != nil:
		return 0, 0, err
	case number == listMetadata && f.wire == wireBytes:
		return whole, 0, l.metadata(f.value.of(p))
	case number == listItems && f.wire == wireBytes:
		return whole, 0, l.rewrite(p[:whole], f.value.of(p))
	}
	return 0, 0, fmt.Errorf("%w: the field %d of a list", errProtobuf, number)
}

func (l *protobufListWriter) advance(n int) {
	if l.left -= n; l.left == 0 {
		l.state = (*protobufListWriter).behind
	}
}

func (l *protobufListWriter) metadata(p []byte) (err error) {
	if l.told != nil {
		l.told.meta = bytes.Clone(p)
	}
	e := Delete(Field{Name: "remainingItemCount", Number: listRemainingItemCount})
	l.scratch, err = appendNested(l.scratch[:0], listMetadata, len(p), func(b []byte) ([]byte, error) {
		return e.protobuf(b, p, e.path)
	})
	return firstOf(err, l.keep(l.scratch))
}

// rewrite takes an item, and the field that it came in.
func (l *protobufListWriter) rewrite(whole, p []byte) error {
	item := &l.item
	kind, apiVersion := item.kind, item.apiVersion
	item.reset(Protobuf)
	item.kind, item.apiVersion = kind, apiVersion
	if err := item.parseProtobuf(p); err != nil {
		return err
	}
	visible, err := l.a.rewrite(item)
	switch {
	case err != nil || !visible:
		return err
	case !item.edited:
		return l.keep(whole)
	}
	l.scratch = binary.AppendUvarint(append(l.scratch[:0], listItems<<3|wireBytes), uint64(len(item.raw)))
	return firstOf(l.keep(l.scratch), l.keep(item.raw))
}

// keep holds what the client is to have.
func (l *protobufListWriter) keep(p []byte) error {
	if l.out.size+len(p) > l.a.o.MaxList {
		return errTooLarge
	}
	l.out.add(p)
	return nil
}

func (l *protobufListWriter) Close() error {
	defer l.out.free()
	switch {
	case l.ended != nil:
		return l.ended
	case l.left > 0 || len(l.carry) > 0 || l.envelope.seen&(1<<unknownRaw) == 0:
		return io.ErrUnexpectedEOF
	}
	head := binary.AppendUvarint(append(l.head, unknownRaw<<3|wireBytes), uint64(l.out.size))
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

// chunks hold bytes in buffers that others have used before.
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
