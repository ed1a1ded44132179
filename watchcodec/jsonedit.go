package watchcodec

import "encoding/json"

// splice is the replacement of a part of a text.
type splice struct {
	span
	with string
}

// planner finds the splices of an edit in a text.
type planner struct {
	e       *Edit
	p       []byte
	at      int // the index after the part that was planned
	w       *window
	splices []splice
}

// apply appends the text with the splices applied.
func (pl *planner) apply(dst []byte) []byte {
	from := 0
	for _, s := range pl.splices {
		dst = append(append(dst, pl.p[from:s.start]...), s.with...)
		from = s.end
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
	c, err := enter(pl.p, pl.at, '{', pl.w)
	if err != nil {
		return false, err
	}
	r := remover{planner: pl, end: c.at}
	pos := newPlace(pl.e, path)
	found := false
	for {
		more, err := c.more()
		if err != nil {
			return false, err
		}
		if !more {
			break
		}
		start := c.at
		r.startElement(start)
		key, err := c.key()
		if err != nil {
			return false, err
		}
		pos.see(key.of(pl.p), start)
		if !sameKey(key.of(pl.p), path[0].Name) {
			value, err := c.value()
			if err != nil {
				return false, err
			}
			r.kept(value.end)
			continue
		}
		found = true
		if err := r.member(&c, start, path); err != nil || c.at == enough {
			return false, err
		}
		if pl.e.once(path) {
			return r.finishEarly(&c)
		}
	}
	if pl.e.kind == sets && !found {
		r.insert(pos.at(), pl.e.added(path))
	}
	pl.at = c.at
	return r.count == 0, nil
}

// member plans for the member that begins at start and has its value at c.at, and moves c.at past
// it.
func (r *remover) member(c *cursor, start int, path Path) error {
	before := len(r.splices)
	r.at = c.at
	gone, err := r.value(path)
	c.at = r.at
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
func (r *remover) finishEarly(c *cursor) (empty bool, err error) {
	at := skipSpace(r.p, c.at)
	if at < len(r.p) && r.p[at] == c.close {
		r.at = at + 1
		return r.count == 0, nil
	}
	if more, err := c.more(); err != nil || !more {
		return false, err
	}
	r.startElement(c.at)
	r.at = enough
	return false, nil
}

// value plans for the value of the path's first step, at pl.at, and moves pl.at past it. gone
// reports whether the whole value is removed.
func (pl *planner) value(path Path) (gone bool, err error) {
	c := cursor{p: pl.p, at: pl.at, w: pl.w}
	first := byte(0)
	if c.at < len(c.p) {
		first = c.p[c.at]
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
	v, err := c.value()
	pl.at = v.end
	if err == nil && pl.e.kind == sets {
		pl.splices = append(pl.splices, splice{v, pl.e.text})
	}
	return pl.e.kind == deletes, err
}

// each plans for the elements of the array at pl.at.
func (pl *planner) each(path Path) error {
	c, err := enter(pl.p, pl.at, '[', pl.w)
	if err != nil {
		return err
	}
	for {
		more, err := c.more()
		if err != nil || !more {
			pl.at = c.at
			return err
		}
		pl.at = c.at
		if _, err := pl.members(path[1:]); err != nil {
			return err
		}
		c.at = pl.at
	}
}

// null plans for a null within the path, which counts as a missing value.
func (pl *planner) null(c *cursor, path Path) error {
	v, err := c.value()
	if err != nil || string(v.of(pl.p)) != "null" {
		return firstOf(err, malformed(v.start))
	}
	if pl.e.kind == sets {
		pl.splices = append(pl.splices, splice{v, "{" + pl.e.added(path[1:]) + "}"})
	}
	pl.at = v.end
	return nil
}

// elements removes elements of the array at pl.at.
func (pl *planner) elements() (empty bool, err error) {
	c, err := enter(pl.p, pl.at, '[', pl.w)
	if err != nil {
		return false, err
	}
	r := remover{planner: pl, end: c.at}
	for {
		more, err := c.more()
		if err != nil || !more {
			pl.at = c.at
			return r.count == 0, err
		}
		r.startElement(c.at)
		element, err := c.value()
		if err != nil {
			return false, err
		}
		if pl.e.keep(Value{JSON, element.of(pl.p)}) {
			r.kept(element.end)
		} else {
			r.removed(element.start, element.end)
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
		start = r.end // includes the comma before it
	}
	r.splices = append(r.splices, splice{span: span{start, end}})
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
	r.splices = append(r.splices, splice{span{at, at}, member})
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
	if p.byName < 0 && keyFollows(key, p.path[0].Name) {
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
