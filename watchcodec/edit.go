package watchcodec

import "fmt"

// Edit is a change of an object's bytes. What it leaves in place stays as it came; where
// the object came from a Kubernetes server, the result is what decoding it, changing it
// and encoding it again would give.
type Edit struct {
	path Path
	kind editKind
	text string
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
// and in maps at its place, in a JSON object at the end.
func Set(text string, path ...Field) Edit { return Edit{path: path, kind: sets, text: text} }

// Keep leaves of the list at the path only the elements for which keep says so.
func Keep(keep func(Value) bool, path ...Field) Edit {
	return Edit{path: path, kind: keeps, keep: keep}
}

// apply appends the edited object to dst, unless nothing changes in it.
func (e *Edit) apply(o *Object, dst []byte) (_ []byte, changed bool, err error) {
	if len(e.path) == 0 {
		return dst, false, fmt.Errorf("an edit without a path")
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
