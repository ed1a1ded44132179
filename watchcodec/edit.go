package watchcodec

import (
	"encoding/json"
	"fmt"
)

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
	splices, _, _, err := e.plan(o.splices[:0], o.raw, 0, e.path)
	o.splices = splices
	if err != nil || len(splices) == 0 {
		return dst, false, err
	}
	from := 0
	for _, s := range splices {
		dst = append(append(dst, o.raw[from:s.start]...), s.with...)
		from = s.end
	}
	return append(dst, o.raw[from:]...), true, nil
}

// protobuf appends a message.
func (e *Edit) protobuf(dst, p []byte, path Path) (_ []byte, err error) {
	from, found := 0, false // p[from:] is not copied yet
	for i := 0; i < len(p); {
		f, err := nextField(p, i)
		if err != nil {
			return dst, err
		}
		if e.kind == sets && !found && e.before(path, f, p) {
			found = true
			dst = append(dst, p[from:i]...)
			dst = e.missing(dst, path)
			from = i
		}
		i = f.whole.end
		if f.number != path[0].Number || isMap(path) && !hasKey(f.value.of(p), path[1].Name) {
			continue
		}
		last := len(path) == 1 || isMap(path) && len(path) == 2
		if last && e.kind == keeps && e.keep(Value{Protobuf, f.value.of(p)}) {
			continue
		}
		dst = append(dst, p[from:f.whole.start]...)
		from = f.whole.end
		switch {
		case !last && isMap(path):
			return dst, fmt.Errorf("watchcodec: a path that goes on behind the key %q", path[1].Name)
		case !last:
			dst, err = appendNested(dst, f.number, len(f.value.of(p)), func(b []byte) ([]byte, error) { return e.protobuf(b, f.value.of(p), path[1:]) })
			if err != nil {
				return dst, err
			}
		case e.kind == sets && !found:
			dst = e.missing(dst, path)
		}
		found = true
	}
	dst = append(dst, p[from:]...)
	if e.kind == sets && !found {
		dst = e.missing(dst, path)
	}
	return dst, nil
}

// isMap says whether the path goes to a key of a map.
func isMap(path Path) bool { return len(path) > 1 && path[1].Number == 0 }

func hasKey(entry []byte, key string) bool {
	k, _ := Value{Protobuf, entry}.pair()
	return string(k) == key
}

// before says whether what is set, and has not come yet, belongs before f: fields are in
// the order of their numbers, and a map's entries in that of their keys.
func (e *Edit) before(path Path, f protoField, p []byte) bool {
	if f.number != path[0].Number || !isMap(path) {
		return f.number > path[0].Number
	}
	key, _ := Value{Protobuf, f.value.of(p)}.pair()
	return string(key) > path[1].Name
}

// missing appends what is set where there was nothing.
func (e *Edit) missing(dst []byte, path Path) []byte {
	content := []byte(e.text)
	for i := len(path) - 1; i > 0; i-- {
		if path[i].Number == 0 {
			entry := appendBytesField(nil, 1, []byte(path[i].Name))
			content = appendBytesField(entry, 2, content)
			continue
		}
		content = appendBytesField(nil, path[i].Number, content)
	}
	return appendBytesField(dst, path[0].Number, content)
}

// splice is a part of a text that is replaced.
type splice struct {
	span
	with string
}

// plan finds what is to be replaced in the object at p[i]. It returns the index behind the
// object and whether nothing is left in it. Where a key can't be there twice, the object
// itself and its metadata, it looks no further than it must, and the index is -1.
func (e *Edit) plan(splices []splice, p []byte, i int, path Path) (_ []splice, end int, empty bool, err error) {
	c, err := enter(p, i, '{')
	if err != nil {
		return splices, i, false, err
	}
	r := remover{splices: splices, end: c.at}
	set := e.kind == sets
	found := false
	for {
		more, err := c.more()
		if err != nil {
			return r.splices, c.at, false, err
		}
		if !more {
			break
		}
		start := c.at
		r.begin(start)
		key, err := c.key()
		if err != nil {
			return r.splices, c.at, false, err
		}
		if set && !found && e.belongsBefore(key.of(p), path) {
			found = true
			r.splices = append(r.splices, splice{span{start, start}, e.added(path) + ","})
		}
		if !sameKey(key.of(p), path[0].Name) {
			value, err := c.value()
			if err != nil {
				return r.splices, c.at, false, err
			}
			r.kept(value.end)
			continue
		}
		found = true
		before := len(r.splices)
		var gone bool
		if r.splices, c.at, gone, err = e.planValue(r.splices, p, c.at, path); err != nil {
			return r.splices, c.at, false, err
		}
		if c.at < 0 {
			return r.splices, -1, false, nil
		}
		if gone {
			r.splices = r.splices[:before]
			r.removed(start, c.at)
		} else {
			r.kept(c.at)
		}
		if e.once(path) {
			return r.stop(p, c)
		}
	}
	if set && !found {
		added := e.added(path)
		if r.count > 0 {
			added = "," + added
		}
		r.splices = append(r.splices, splice{span{r.end, r.end}, added})
		r.count++
	}
	return r.splices, c.at, r.count == 0, nil
}

// once says whether a key of the object that the path begins in is there once at most;
// Object has seen to that when it was parsed.
func (e *Edit) once(path Path) bool {
	at := len(e.path) - len(path)
	return at == 0 || at == 1 && e.path[0] == metadata
}

// stop ends the look at an object of which nothing more changes.
func (r *remover) stop(p []byte, c cursor) (_ []splice, end int, empty bool, err error) {
	at := skipSpace(p, c.at)
	if at < len(p) && p[at] == c.close {
		return r.splices, at + 1, r.count == 0, nil
	}
	if more, err := c.more(); err != nil || !more {
		return r.splices, c.at, false, err
	}
	r.begin(c.at)
	return r.splices, -1, false, nil
}

// belongsBefore says whether what is set, and has not come yet, belongs before the key:
// maps are in the order of their keys, metadata in that of ObjectMeta.
func (e *Edit) belongsBefore(key []byte, path Path) bool {
	if path[0].Number == 0 {
		return string(key) > quoted(path[0].Name)
	}
	at := len(e.path) - len(path)
	return at == 1 && e.path[0] == metadata && objectMetaNumber(key) > path[0].Number
}

// planValue plans for the value of the path's first step. gone says that it goes as a
// whole.
func (e *Edit) planValue(splices []splice, p []byte, i int, path Path) (_ []splice, end int, gone bool, err error) {
	if len(path) > 1 {
		if i < len(p) && p[i] != '{' {
			return e.planNull(splices, p, i, path)
		}
		splices, end, empty, err := e.plan(splices, p, i, path[1:])
		return splices, end, empty && path[0].OmitEmpty, err
	}
	if e.kind == keeps && i < len(p) && p[i] == '[' {
		splices, end, empty, err := e.planKeep(splices, p, i)
		return splices, end, empty && path[0].OmitEmpty, err
	}
	if end, err = skipValue(p, i); err == nil && e.kind == sets {
		splices = append(splices, splice{span{i, end}, quoted(e.text)})
	}
	return splices, end, e.kind == deletes, err
}

// planNull plans for a null on the way, which is what is not there.
func (e *Edit) planNull(splices []splice, p []byte, i int, path Path) (_ []splice, end int, gone bool, err error) {
	end, err = skipValue(p, i)
	if err != nil || string(p[i:end]) != "null" {
		return splices, end, false, firstOf(err, malformed(i))
	}
	if e.kind == sets {
		splices = append(splices, splice{span{i, end}, "{" + e.added(path[1:]) + "}"})
	}
	return splices, end, false, nil
}

// planKeep drops elements of the array at p[i].
func (e *Edit) planKeep(splices []splice, p []byte, i int) (_ []splice, end int, empty bool, err error) {
	c, err := enter(p, i, '[')
	if err != nil {
		return splices, i, false, err
	}
	r := remover{splices: splices, end: c.at}
	for {
		more, err := c.more()
		if err != nil || !more {
			return r.splices, c.at, r.count == 0, err
		}
		r.begin(c.at)
		element, err := c.value()
		if err != nil {
			return r.splices, c.at, false, err
		}
		if e.keep(Value{JSON, element.of(p)}) {
			r.kept(element.end)
		} else {
			r.removed(element.start, element.end)
		}
	}
}

// remover removes elements between commas.
type remover struct {
	splices []splice
	count   int  // how many stay
	end     int  // of the element before, or behind the bracket
	leading bool // the last splice goes on to the next element
}

// begin is called where an element begins.
func (r *remover) begin(start int) {
	if r.leading {
		r.splices[len(r.splices)-1].end = start
		r.leading = false
	}
}

func (r *remover) kept(end int) {
	r.count++
	r.end = end
}

func (r *remover) removed(start, end int) {
	if r.count > 0 {
		start = r.end // with the comma before it
	}
	r.splices = append(r.splices, splice{span: span{start, end}})
	r.leading = r.count == 0 // with the comma behind it
	r.end = end
}

// added is the member that is set where there was none, and what is around it.
func (e *Edit) added(path Path) string {
	text := quoted(e.text)
	for i := len(path) - 1; i > 0; i-- {
		text = "{" + quoted(path[i].Name) + ":" + text + "}"
	}
	return quoted(path[0].Name) + ":" + text
}

// quoted is a string in JSON.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string is one that can't be encoded
	}
	return string(b)
}
