package watchcodec

import "encoding/json"

// splice is a part of a text that is replaced.
type splice struct {
	span
	with string
}

// planner finds what an edit replaces in a text.
type planner struct {
	e       *Edit
	p       []byte
	at      int // behind what was planned for
	w       *window
	splices []splice
}

// apply appends the text with what is replaced.
func (pl *planner) apply(dst []byte) []byte {
	from := 0
	for _, s := range pl.splices {
		dst = append(append(dst, pl.p[from:s.start]...), s.with...)
		from = s.end
	}
	return append(dst, pl.p[from:]...)
}

// enough is where a planner stands that has found all that there can be.
const enough = -1

// object plans for the object at pl.at and goes behind it. Where a key can't be there
// twice, in the object itself and its metadata, it looks no further than it must.
func (pl *planner) object(path Path) error {
	_, err := pl.members(path)
	return err
}

// members does that and returns whether nothing is left in the object.
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
		r.begin(start)
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
			return r.stop(&c)
		}
	}
	if pl.e.kind == sets && !found {
		r.insert(pos.at(), pl.e.added(path))
	}
	pl.at = c.at
	return r.count == 0, nil
}

// member plans for the member that begins at start and has its value at c.at, and goes
// behind it.
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

// stop ends the look at an object of which nothing more changes.
func (r *remover) stop(c *cursor) (empty bool, err error) {
	at := skipSpace(r.p, c.at)
	if at < len(r.p) && r.p[at] == c.close {
		r.at = at + 1
		return r.count == 0, nil
	}
	if more, err := c.more(); err != nil || !more {
		return false, err
	}
	r.begin(c.at)
	r.at = enough
	return false, nil
}

// value plans for the value of the path's first step, at pl.at, and goes behind it. gone
// says that it goes as a whole.
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

// null plans for a null on the way, which is what is not there.
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

// elements drops elements of the array at pl.at.
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
		r.begin(c.at)
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

// remover removes elements between commas.
type remover struct {
	*planner
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

// once says whether a key of the object that the path begins in is there once at most;
// Object has seen to that when it was parsed.
func (e *Edit) once(path Path) bool {
	at := len(e.path) - len(path)
	return at == 0 || at == 1 && e.path[0] == metadata
}

// insert adds a member at a place, -1 for the end.
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

// place finds where what is set belongs, if it is not there yet: maps are in the order of
// their keys, metadata in that of ObjectMeta, unless it is a custom resource's, which are
// maps all through.
type place struct {
	e        *Edit
	path     Path
	byNumber int // before the first key that follows in ObjectMeta, -1 for the end
	byName   int // before the first key that follows by its name
	last     int // the number of the key before
	sorted   bool
}

func newPlace(e *Edit, path Path) place {
	return place{e: e, path: path, byNumber: -1, byName: -1}
}

// see is told a key and where its member begins.
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

// added is the member that is set where there was none, and what is around it.
func (e *Edit) added(path Path) string {
	text := e.text
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
