package watchcodec

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Fields of every list (ListMeta is its metadata).
const (
	listMetadata, listItems = 1, 2
	listRemainingItemCount  = 4
)

// protobufListWriter takes a list in protobuf and sends what the client sees of it. The
// length of what is sent comes first there, so the list is held.
type protobufListWriter struct {
	w     io.Writer
	a     *answer
	buf   []byte
	ended error
}

func (l *protobufListWriter) Write(p []byte) (int, error) {
	if l.ended == nil && len(l.buf)+len(p) > l.a.o.MaxList {
		l.ended = errTooLarge
	}
	if l.ended != nil {
		return 0, l.ended
	}
	if need := len(l.buf) + len(p); need > cap(l.buf) {
		l.buf = slices.Grow(l.buf, max(len(p), len(l.buf)))
	}
	l.buf = append(l.buf, p...)
	return len(p), nil
}

func (l *protobufListWriter) Close() error {
	if l.ended != nil {
		return l.ended
	}
	parts, err := rewriteList(l.buf, l.a.rewrite)
	for _, part := range parts {
		if err == nil {
			_, err = l.w.Write(part)
		}
	}
	return err
}

// rewriteList returns what a list becomes, in parts.
func rewriteList(p []byte, rewrite Rewriter) ([][]byte, error) {
	var list Object
	list.format = Protobuf
	if err := list.open(p); err != nil {
		return nil, err
	}
	if string(list.kind) == "Status" {
		return [][]byte{p}, nil
	}
	kind, isList := bytes.CutSuffix(list.kind, []byte("List"))
	if !isList {
		return nil, fmt.Errorf("watchcodec: a %s in the place of a list", list.kind)
	}
	item := Object{kind: kind, apiVersion: list.apiVersion}
	out := make([]byte, 0, len(list.raw))
	for i := 0; i < len(list.raw); {
		f, err := nextField(list.raw, i)
		if err != nil {
			return nil, err
		}
		i = f.whole.end
		switch {
		case f.number == listMetadata && f.wire == wireBytes:
			e := Delete(Field{Name: "remainingItemCount", Number: listRemainingItemCount})
			out, err = appendNested(out, listMetadata, len(f.value.of(list.raw)), func(b []byte) ([]byte, error) {
				return e.protobuf(b, f.value.of(list.raw), e.path)
			})
		case f.number == listItems && f.wire == wireBytes:
			out, err = rewriteItem(out, &item, f.value.of(list.raw), rewrite)
		default:
			err = fmt.Errorf("%w: the field %d of a list", errProtobuf, f.number)
		}
		if err != nil {
			return nil, err
		}
	}
	before, after, err := around(p, len(out))
	return [][]byte{before, out, after}, err
}

func rewriteItem(out []byte, item *Object, p []byte, rewrite Rewriter) ([]byte, error) {
	kind, apiVersion := item.kind, item.apiVersion
	item.reset(Protobuf)
	item.kind, item.apiVersion = kind, apiVersion
	if err := item.parseProtobuf(p); err != nil {
		return out, err
	}
	visible, err := rewrite(item)
	if err != nil || !visible {
		return out, err
	}
	return appendBytesField(out, listItems, item.raw), nil
}
