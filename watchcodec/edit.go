package watchcodec

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Edit is a change of an object's bytes. What it leaves in place stays as it came; where
// the object came from a Kubernetes server, the result is what decoding it, changing it
// and encoding it again would give. A list on the way of a path stands for each of its
// elements.
type Edit struct {
	path Path
	kind editKind
	text string // what is set, in JSON
	wire string // and in protobuf
	keep func(Value) bool
}

type editKind int

const (
	deletes editKind = iota
	sets
	keeps
)

// Delete removes the value at the path, a list or a map as well. It is no error if there
// is none.
func Delete(path ...Field) Edit { return Edit{path: path, kind: deletes} }

// Set makes the value at the path a string. Where there is none it is added: in protobuf
// and in maps at its place, in a JSON object at the end. A list on the way of the path must be
// there: without it nothing tells that it is one.
func Set(text string, path ...Field) Edit {
	return Edit{path: path, kind: sets, text: quoted(text), wire: text}
}

// SetRaw makes the value at the path what is encoded in both formats: in JSON a text, in
// protobuf what is inside the field, or inside a list's only element. It is not looked at.
func SetRaw(json, protobuf string, path ...Field) Edit {
	return Edit{path: path, kind: sets, text: json, wire: protobuf}
}

// Keep leaves of the list at the path only the elements for which keep says so.
func Keep(keep func(Value) bool, path ...Field) Edit {
	return Edit{path: path, kind: keeps, keep: keep}
}

// apply appends the edited object to dst, unless nothing changes in it.
func (e *Edit) apply(o *Object, dst []byte) (_ []byte, changed bool, err error) {
	if len(e.path) == 0 {
		return dst, false, fmt.Errorf("an edit without a path")
	}
	if e.kind == deletes && slices.Equal(e.path, managedFields) && !o.stale && o.meta.managed.start > 0 {
		return o.withoutManaged(dst), true, nil
	}
	if o.format == Protobuf {
		dst, err = e.protobuf(dst, o.raw, e.path)
		return dst, true, err
	}
	plan := planner{e: e, p: o.raw, w: o.look(), splices: o.splices[:0]}
	err = plan.object(e.path)
	o.splices = plan.splices
	if err != nil || len(plan.splices) == 0 {
		return dst, false, err
	}
	return plan.apply(dst), true, nil
}

// withoutManaged appends the object without managedFields, which are often edited away and
// which parsing has seen. Where they are the first of the metadata it is not used.
func (o *Object) withoutManaged(dst []byte) []byte {
	meta, whole, managed := o.meta.all.raw, o.meta.whole, o.meta.managed
	dst = append(dst, o.raw[:whole.start]...)
	if o.format == Protobuf {
		dst = append(dst, byte(metadata.Number<<3|wireBytes))
		dst = binary.AppendUvarint(dst, uint64(len(meta)-(managed.end-managed.start)))
	}
	dst = append(append(dst, meta[:managed.start]...), meta[managed.end:]...)
	return append(dst, o.raw[whole.end:]...)
}
