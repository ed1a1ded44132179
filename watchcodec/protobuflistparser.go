package watchcodec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// Field numbers of every list (ListMeta is its metadata).
const (
	listMetadata, listItems = 1, 2
	listRemainingItemCount  = 4
)

// protobufListParser parses a list in protobuf, field by field. It holds no more than a field.
type protobufListParser struct {
	parts     listParts
	rules     listRules
	carry     []byte // the beginning of the next field
	need      int    // the number of bytes that state needs of the field
	state     func(l *protobufListParser, p []byte) (used, need int, err error)
	envelope  envelope
	head      []byte // the envelope in front of the list
	tail      []byte // the envelope after the list
	remaining int    // remaining bytes of the list
	object    Object
	err       error
}

// maxPrefix is the largest size of a field's tag and length: with them, the end of a field is an int
// on every machine.
const maxPrefix = 2 * binary.MaxVarintLen64

// init initializes l, which is a part of its user's memory.
func (l *protobufListParser) init(parts listParts, rules listRules) {
	rules.maxObject = min(rules.maxObject, math.MaxInt32-maxPrefix)
	l.parts, l.rules, l.state = parts, rules, (*protobufListParser).takeMagic
}

func (l *protobufListParser) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && l.err == nil; {
		rest = l.take(rest)
	}
	if l.err != nil {
		return 0, l.err
	}
	return len(p), nil
}

// take consumes the first field of p, or as much of it as there is, and returns the rest.
func (l *protobufListParser) take(p []byte) (rest []byte) {
	var used int
	if len(l.carry) == 0 {
		if used, l.need, l.err = l.state(l, p); used > 0 || l.err != nil {
			return p[used:]
		}
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

// Close fails if the list has not ended: it must not be taken for a whole one.
func (l *protobufListParser) Close() error {
	if l.err == nil && (l.remaining > 0 || len(l.carry) > 0 || l.envelope.seen&(1<<unknownRaw) == 0) {
		l.err = io.ErrUnexpectedEOF
	}
	return l.err
}

func (l *protobufListParser) typeMeta() (apiVersion, kind string) {
	return string(l.envelope.apiVersion), string(l.envelope.kind)
}

// The states consume the field that p begins with. While the field is incomplete they consume
// nothing, and return the number of bytes that they need.

func (l *protobufListParser) takeMagic(p []byte) (used, need int, err error) {
	if len(p) < len(magic) {
		return 0, len(magic), nil
	}
	if string(p[:len(magic)]) != magic {
		return 0, 0, fmt.Errorf("%w: no Kubernetes object", scan.ErrProtobuf)
	}
	l.head = append(l.head, magic...)
	l.state = (*protobufListParser).takeBefore
	return len(magic), 0, nil
}

// takeBefore consumes the fields of the envelope before the list.
func (l *protobufListParser) takeBefore(p []byte) (used, need int, err error) {
	number, at, size, err := scan.FieldPrefix(p)
	switch {
	case err != nil:
		return 0, 0, err
	case at == 0:
		return 0, len(p) + 1, nil
	case number != unknownRaw:
		return l.takeAround(&l.head, p)
	case p[0]&7 != scan.WireBytes:
		return 0, 0, scan.ErrProtobuf
	}
	kind := l.envelope.kind
	single, isList := bytes.CutSuffix(kind, []byte("List"))
	switch {
	case isList:
		l.state = (*protobufListParser).takeField
	case l.rules.status && string(kind) == "Status":
		l.state = (*protobufListParser).takeStatus
	default:
		return 0, 0, noList(kind)
	}
	l.object.kind, l.object.apiVersion = single, l.envelope.apiVersion
	l.remaining = size
	if size == 0 {
		l.state = (*protobufListParser).takeAfter
	}
	l.envelope.seen |= 1 << unknownRaw
	return at, 0, nil
}

// takeAfter consumes the fields of the envelope after the list.
func (l *protobufListParser) takeAfter(p []byte) (used, need int, err error) {
	return l.takeAround(&l.tail, p)
}

func (l *protobufListParser) takeAround(kept *[]byte, p []byte) (used, need int, err error) {
	_, at, size, err := scan.FieldPrefix(p)
	switch {
	case err != nil:
		return 0, 0, err
	case at == 0:
		return 0, len(p) + 1, nil
	case size > l.rules.maxObject:
		return 0, 0, errTooLarge
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

// takeStatus consumes a Status in the place of a list.
func (l *protobufListParser) takeStatus(p []byte) (used, need int, err error) {
	n := min(len(p), l.remaining)
	l.advance(n)
	return n, 0, l.parts.verbatim(p[:n])
}

// takeField consumes a field of the list.
func (l *protobufListParser) takeField(p []byte) (used, need int, err error) {
	p = p[:min(len(p), l.remaining)]
	number, at, size, err := scan.FieldPrefix(p)
	switch {
	case err != nil:
		return 0, 0, err
	case size > l.remaining-at || at == 0 && len(p) == l.remaining:
		return 0, 0, scan.ErrProtobuf
	case at == 0:
		return 0, len(p) + 1, nil
	case size > l.rules.maxObject:
		return 0, 0, errTooLarge
	case size > len(p)-at:
		return 0, at + size, nil
	}
	whole := at + size
	l.advance(whole)
	switch f, err := scan.NextField(p, 0); {
	case err != nil:
		return 0, 0, err
	case number == listMetadata && f.Wire == scan.WireBytes:
		return whole, 0, l.parts.metadata(f.Value.Of(p))
	case number == listItems && f.Wire == scan.WireBytes:
		return whole, 0, l.takeItem(p[:at], f.Value.Of(p))
	}
	return 0, 0, fmt.Errorf("%w: the field %d of a list", scan.ErrProtobuf, number)
}

func (l *protobufListParser) advance(n int) {
	if l.remaining -= n; l.remaining == 0 {
		l.state = (*protobufListParser).takeAfter
	}
}

// takeItem passes the item p on, which has its kind from the list.
func (l *protobufListParser) takeItem(before, p []byte) error {
	o := &l.object
	kind, apiVersion := o.kind, o.apiVersion
	o.reset(Protobuf)
	o.kind, o.apiVersion = kind, apiVersion
	if err := o.parseProtobuf(p); err != nil {
		return err
	}
	return l.parts.item(before, o, nil)
}
