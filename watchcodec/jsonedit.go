package watchcodec

import (
	"encoding/json"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// splice is the replacement of a part of a text.
type splice struct {
	scan.Span
	with string
}

// planner finds the splices of an edit in a text.
type planner struct {
	e       *Edit
	p       []byte
	at      int // the index after the part that was planned
	w       *scan.Window
	splices []splice
}

// apply appends the text with the splices applied.
func (pl *planner) apply(dst []byte) []byte {
	from := 0
	for _, s := range pl.splices {
		dst = append(append(dst, pl.p[from:s.Start]...), s.with...)
		from = s.End
	}
	return append(dst, pl.p[from:]...)
}

// enough is the value of planner.at when every splice has been found before the end.
const enough = -1

// object plans for the object at pl.at and moves pl.at past it. Where a key can't be there twice,
// in the object itself and in its metadata, it scans no further than needed.
func (pl *planner) object(path Path) error {
	_, err := pl.members(path)
	return err
}

// members is object, and reports whether the object has no members left.
func (pl *planner) members(path Path) (empty bool, err error) {
	c, err := scan.Enter(pl.p, pl.at, '{', pl.w)
	if err != nil {
		return false, err
	}
	r := remover{planner: pl, end: c.At}
	pos := newPlace(pl.e, path)
	found := false
	for {
		more, err := c.More()
		if err != nil {
			return false, err
		}
		if !more {
			break
		}
		start := c.At
		r.startElement(start)
		key, err := c.Key()
		if err != nil {
			return false, err
		}
		pos.see(key.Of(pl.p), start)
		if !scan.SameKey(key.Of(pl.p), path[0].Name) {
			value, err := c.Value()
			if err != nil {
				return false, err
			}
			r.kept(value.End)
			continue
		}
		found = true
		if err := r.member(&c, start, path); err != nil || c.At == enough {
			return false, err
		}
		if pl.e.once(path) {
			return r.finishEarly(&c)
		}
	}
	if pl.e.kind == sets && !found {
		r.insert(pos.at(), pl.e.added(path))
	}
	pl.at = c.At
	return r.count == 0, nil
}

// member plans for the member that begins at start and has its value at c.at, and moves c.at past
// it.
func (r *remover) member(c *scan.Cursor, start int, path Path) error {
	before := len(r.splices)
	r.at = c.At
	gone, err := r.value(path)
	c.At = r.at
	switch {
	case err != nil || r.at == enough:
	case gone:
		r.splices = r.splices[:before]
		r.removed(start, r.at)
	default:
		r.kept(r.at)
	}
	return err
}

// finishEarly ends the scan of an object in which nothing more changes.
func (r *remover) finishEarly(c *scan.Cursor) (empty bool, err error) {
	if end, ok := c.Ends(); ok {
		r.at = end
		return r.count == 0, nil
	}
	if more, err := c.More(); err != nil || !more {
		return false, err
	}
	r.startElement(c.At)
	r.at = enough
	return false, nil
}

// value plans for the value of the path's first step, at pl.at, and moves pl.at past it. gone
// reports whether the whole value is removed.
func (pl *planner) value(path Path) (gone bool, err error) {
	c := scan.Cursor{Text: pl.p, At: pl.at, Window: pl.w}
	first := byte(0)
	if c.At < len(c.Text) {
		first = c.Text[c.At]
	}
	switch {
	case len(path) > 1 && first == '[':
		return false, pl.each(path)
	case len(path) > 1 && first != '{':
		return false, pl.null(&c, path)
	case len(path) > 1:
		empty, err := pl.members(path[1:])
		return empty && path[0].OmitEmpty, err
	case pl.e.kind == keeps && first == '[':
		empty, err := pl.elements()
		return empty && path[0].OmitEmpty, err
	}
	v, err := c.Value()
	pl.at = v.End
	if err == nil && pl.e.kind == sets {
		pl.splices = append(pl.splices, splice{v, pl.e.text})
	}
	return pl.e.kind == deletes, err
}

// each plans for the elements of the array at pl.at.
func (pl *planner) each(path Path) error {
	c, err := scan.Enter(pl.p, pl.at, '[', pl.w)
	if err != nil {
		return err
	}
	for {
		more, err := c.More()
		if err != nil || !more {
			pl.at = c.At
			return err
		}
		pl.at = c.At
		if _, err := pl.members(path[1:]); err != nil {
			return err
		}
		c.At = pl.at
	}
}

// null plans for a null within the path, which counts as a missing value.
func (pl *planner) null(c *scan.Cursor, path Path) error {
	v, err := c.Value()
	if err != nil || string(v.Of(pl.p)) != "null" {
		return firstOf(err, scan.Malformed(v.Start))
	}
	if pl.e.kind == sets {
		pl.splices = append(pl.splices, splice{v, "{" + pl.e.added(path[1:]) + "}"})
	}
	pl.at = v.End
	return nil
}

// elements removes elements of the array at pl.at.
func (pl *planner) elements() (empty bool, err error) {
	c, err := scan.Enter(pl.p, pl.at, '[', pl.w)
	if err != nil {
		return false, err
	}
	r := remover{planner: pl, end: c.At}
	for {
		more, err := c.More()
		if err != nil || !more {
			pl.at = c.At
			return r.count == 0, err
		}
		r.startElement(c.At)
		element, err := c.Value()
		if err != nil {
			return false, err
		}
		if pl.e.keep(Value{JSON, element.Of(pl.p)}) {
			r.kept(element.End)
		} else {
			r.removed(element.Start, element.End)
		}
	}
}

// remover removes elements or members, with the commas between them.
type remover struct {
	*planner
	count   int  // elements that are kept
	end     int  // of the element before, else the index after the bracket
	leading bool // the last splice extends to the next element
}

// startElement is called at the first byte of an element.
func (r *remover) startElement(start int) {
	if r.leading {
		r.splices[len(r.splices)-1].End = start
		r.leading = false
	}
}

func (r *remover) kept(end int) {
	r.count++
	r.end = end
}

func (r *remover) removed(start, end int) {
	if r.count > 0 {
		start = r.end // includes the comma before it
	}
	r.splices = append(r.splices, splice{Span: scan.Span{Start: start, End: end}})
	r.leading = r.count == 0 // includes the comma after it
	r.end = end
}

// once reports whether a key of the object that path begins in can be there once at most; Object
// has checked that when it was parsed.
func (e *Edit) once(path Path) bool {
	at := len(e.path) - len(path)
	return at == 0 || at == 1 && e.path[0] == metadata
}

// insert adds a member at an index, -1 for the end.
func (r *remover) insert(at int, member string) {
	switch {
	case at >= 0:
		member += ","
	case r.count > 0:
		at, member = r.end, ","+member
	default:
		at = r.end
	}
	r.splices = append(r.splices, splice{scan.Span{Start: at, End: at}, member})
	r.count++
}

// place finds the index for a member that is added: maps are in the order of their keys, metadata
// is in that of ObjectMeta, unless it is a custom resource's, of which all objects are in the order
// of keys.
type place struct {
	e        *Edit
	path     Path
	byNumber int // the index of the first key that follows in ObjectMeta, -1 for the end
	byName   int // the index of the first key that follows by its name, -1 for the end
	last     int // the number of the preceding key
	sorted   bool
}

func newPlace(e *Edit, path Path) place {
	return place{e: e, path: path, byNumber: -1, byName: -1}
}

// see is called with each key and the index of its member.
func (p *place) see(key []byte, start int) {
	if p.e.kind != sets {
		return
	}
	if p.byName < 0 && scan.KeyFollows(key, p.path[0].Name) {
		p.byName = start
	}
	number := objectMetaNumber(key)
	if p.byNumber < 0 && number > p.path[0].Number {
		p.byNumber = start
	}
	p.sorted = p.sorted || number < p.last
	p.last = number
}

func (p *place) at() int {
	depth := len(p.e.path) - len(p.path)
	switch {
	case p.path[0].Number == 0 || depth == 1 && p.e.path[0] == metadata && p.sorted:
		return p.byName
	case depth == 1 && p.e.path[0] == metadata:
		return p.byNumber
	}
	return -1
}

// added returns the member to add where path begins, with the objects around the value.
func (e *Edit) added(path Path) string {
	text := e.text
	for i := len(path) - 1; i > 0; i-- {
		text = "{" + quoted(path[i].Name) + ":" + text + "}"
	}
	return quoted(path[0].Name) + ":" + text
}

// quoted returns s as a string in JSON.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // every string can be encoded
	}
	return string(b)
}
