package watchcodec

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// Edit is a change of an object's bytes. Bytes that it does not concern are left unchanged. If the
// object was encoded by a Kubernetes server, the result is what decoding it, changing it and
// encoding it again would give. Where a path crosses a list, the edit applies to each of its
// elements.
type Edit struct {
	path Path
	kind editKind
	text string // the value that is set, in JSON
	wire string // the value that is set, in protobuf
	keep func(Value) bool
}

type editKind int

const (
	deletes editKind = iota
	sets
	keeps
)

// Delete removes the value at the path, which may be a list or a map. If there is no value, it does
// nothing.
func Delete(path ...Field) Edit { return Edit{path: path, kind: deletes} }

// Set makes the value at the path a string. A missing value is added: in protobuf and in maps at
// its place in the order, in a JSON object at the end. A list that the path crosses must exist,
// since its absence does not show that it would be a list.
func Set(text string, path ...Field) Edit {
	return Edit{path: path, kind: sets, text: quoted(text), wire: text}
}

// SetRaw replaces the value at the path with an encoded one: json is the text in JSON, protobuf the
// content of the field, or of a list's only element. The value is not validated.
func SetRaw(json, protobuf string, path ...Field) Edit {
	return Edit{path: path, kind: sets, text: json, wire: protobuf}
}

// Keep removes from the list at the path the elements for which keep returns false.
func Keep(keep func(Value) bool, path ...Field) Edit {
	return Edit{path: path, kind: keeps, keep: keep}
}

// apply appends the edited object to dst. If the edit changes nothing, it reports false and appends
// nothing.
func (e *Edit) apply(o *Object, dst []byte) (_ []byte, changed bool, err error) {
	if len(e.path) == 0 {
		return dst, false, fmt.Errorf("an edit without a path")
	}
	if e.kind == deletes && slices.Equal(e.path, managedFields) && !o.stale && o.meta.managed.Start > 0 {
		return o.withoutManaged(dst), true, nil
	}
	if o.format == Protobuf {
		dst, err = e.protobuf(dst, o.raw, e.path)
		return dst, true, err
	}
	plan := planner{e: e, p: o.raw, w: o.resetWindow(), splices: o.splices[:0]}
	err = plan.object(e.path)
	o.splices = plan.splices
	if err != nil || len(plan.splices) == 0 {
		return dst, false, err
	}
	return plan.apply(dst), true, nil
}

// withoutManaged appends the object without managedFields. They are edited away often, and the
// parser has noted where they are. It is not used where they are the first field of the metadata.
func (o *Object) withoutManaged(dst []byte) []byte {
	meta, whole, managed := o.meta.all.raw, o.meta.whole, o.meta.managed
	dst = append(dst, o.raw[:whole.Start]...)
	if o.format == Protobuf {
		dst = append(dst, byte(metadata.Number<<3|scan.WireBytes))
		dst = binary.AppendUvarint(dst, uint64(len(meta)-(managed.End-managed.Start)))
	}
	dst = append(append(dst, meta[:managed.Start]...), meta[managed.End:]...)
	return append(dst, o.raw[whole.End:]...)
}
