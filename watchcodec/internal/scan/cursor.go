package scan

import "bytes"

// Span is a part of some bytes. The zero span is none.
type Span struct{ Start, End int }

// Of returns the part of p.
func (s Span) Of(p []byte) []byte { return p[s.Start:s.End] }

// Cursor iterates over the members of an object or the elements of an array, see Enter. A Cursor
// with Text and At alone is for the one value at At.
type Cursor struct {
	Text   []byte
	At     int
	close  byte
	first  bool
	Window *Window // shared by the cursors over the same bytes; may be nil
}

// Enter returns a cursor after the bracket p[i], which must be open.
func Enter(p []byte, i int, open byte, w *Window) (Cursor, error) {
	if i >= len(p) || p[i] != open {
		return Cursor{}, Malformed(i)
	}
	return Cursor{Text: p, At: i + 1, close: open + 2, first: true, Window: w}, nil
}

// More moves c.At to the next element and returns true. At the closing bracket it moves c.At past
// it and returns false.
func (c *Cursor) More() (bool, error) {
	c.At = SkipSpace(c.Text, c.At)
	switch {
	case c.At >= len(c.Text):
		return false, Malformed(c.At)
	case c.Text[c.At] == c.close:
		c.At++
		return false, nil
	case c.first:
		c.first = false
		return true, nil
	case c.Text[c.At] != ',':
		return false, Malformed(c.At)
	}
	c.At = SkipSpace(c.Text, c.At+1)
	return true, nil
}

// Ends reports whether no element follows, and returns the index after the closing bracket then.
func (c *Cursor) Ends() (end int, ok bool) {
	end = SkipSpace(c.Text, c.At)
	return end + 1, end < len(c.Text) && c.Text[end] == c.close
}

// Key returns the key of a member and moves c.At to the member's value.
func (c *Cursor) Key() (Span, error) {
	end, err := skipString(c.Text, c.At)
	if err != nil {
		return Span{}, err
	}
	key := Span{c.At, end}
	colon := SkipSpace(c.Text, end)
	if colon >= len(c.Text) || c.Text[colon] != ':' {
		return key, Malformed(colon)
	}
	c.At = SkipSpace(c.Text, colon+1)
	return key, nil
}

// Value returns the value at c.At and moves c.At past it.
func (c *Cursor) Value() (s Span, err error) {
	s.Start = c.At
	if c.Window != nil && c.At < len(c.Text) && (c.Text[c.At] == '{' || c.Text[c.At] == '[') {
		c.At, err = c.Window.Skip(c.Text, c.At)
	} else {
		c.At, err = SkipValue(c.Text, c.At)
	}
	s.End = c.At
	return s, err
}

// FindMember returns the value of a member of the object p, the last one if there are several. ok
// is false if there is none, or if p is not an object.
func FindMember(p []byte, name string) (value Span, ok bool) {
	if len(name) <= maxQuick && bytes.IndexByte(p, '\\') < 0 {
		return findPlain(p, name)
	}
	c, err := Enter(p, SkipSpace(p, 0), '{', nil)
	if err != nil {
		return Span{}, false
	}
	return c.find(name)
}

// maxQuick bounds the length of a name that findPlain looks for.
const maxQuick = 62

// findPlain is FindMember for an object without escapes, in which the quoted name is a string of
// its own wherever it occurs. If members follow it up to the end of the object, it is a key of the
// object and not of one inside.
func findPlain(p []byte, name string) (value Span, ok bool) {
	var few [maxQuick + 1]byte
	tail := append(append(few[:0], name...), '"') // not the first quote: there are too many
	for from := 1; from < len(p); from += len(tail) {
		i := bytes.Index(p[from:], tail)
		if i < 0 {
			break
		}
		if from += i; p[from-1] != '"' {
			continue
		}
		c := Cursor{Text: p, At: from - 1, close: '}', first: true}
		if value, ok = c.find(name); ok && SkipSpace(p, c.At) == len(p) {
			return value, true
		}
	}
	return Span{}, false
}

// find looks for a name in the remaining members, see FindMember.
func (c *Cursor) find(name string) (value Span, ok bool) {
	for {
		more, err := c.More()
		if err != nil || !more {
			return value, ok && err == nil
		}
		key, err := c.Key()
		if err != nil {
			return Span{}, false
		}
		v, err := c.Value()
		if err != nil {
			return Span{}, false
		}
		if SameKey(key.Of(c.Text), name) {
			value, ok = v, true
		}
	}
}
