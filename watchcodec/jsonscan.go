package watchcodec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxDepth is how deep JSON may be nested, as in encoding/json.
const maxDepth = 10000

var errJSON = errors.New("watchcodec: malformed JSON")

func malformed(i int) error { return fmt.Errorf("%w at byte %d", errJSON, i) }

// skipSpace returns the index of the first byte at or behind i that is no white space.
func skipSpace(p []byte, i int) int {
	for i < len(p) && isSpace(p[i]) {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at p[i].
func skipString(p []byte, i int) (int, error) {
	if i >= len(p) || p[i] != '"' {
		return i, malformed(i)
	}
	end, _ := stringEnd(p, i+1)
	if end < 0 {
		return len(p), malformed(len(p))
	}
	return end + 1, nil
}

// skipValue returns the index behind the value that begins at p[i]. Brackets must match;
// what numbers and literals are made of is not looked at.
func skipValue(p []byte, i int) (int, error) {
	if i >= len(p) {
		return i, malformed(i)
	}
	switch p[i] {
	case '"':
		return skipString(p, i)
	case '{', '[':
		return skipNested(p, i)
	case '}', ']', ',', ':':
		return i, malformed(i)
	}
	for i < len(p) && !isSpace(p[i]) && p[i] != ',' && p[i] != '}' && p[i] != ']' {
		i++
	}
	return i, nil
}

// nesting are the bytes that skipNested stops at: quotes and brackets.
var nesting = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

func skipNested(p []byte, i int) (int, error) {
	var few [64]byte
	open := few[:0] // the brackets that are open
	for i < len(p) {
		c := p[i]
		if !nesting[c] {
			i++
			continue
		}
		switch c {
		case '"':
			end, _ := stringEnd(p, i+1)
			if end < 0 {
				return len(p), malformed(len(p))
			}
			i = end
		case '{', '[':
			if len(open) == maxDepth {
				return i, fmt.Errorf("%w: nested too deeply at byte %d", errJSON, i)
			}
			open = append(open, c+2) // ASCII: } is two behind {, and ] behind [
		default:
			if open[len(open)-1] != c {
				return i, malformed(i)
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return len(p), malformed(len(p))
}

// span is a part of some bytes. The zero span is none.
type span struct{ start, end int }

func (s span) of(p []byte) []byte { return p[s.start:s.end] }

// cursor goes through the members of an object or the elements of an array.
type cursor struct {
	p     []byte
	at    int
	close byte
	first bool
}

// enter begins at the bracket p[i], which must be open.
func enter(p []byte, i int, open byte) (cursor, error) {
	if i >= len(p) || p[i] != open {
		return cursor{}, malformed(i)
	}
	return cursor{p: p, at: i + 1, close: open + 2, first: true}, nil
}

// more goes to the next element, and returns false at the closing bracket, behind which
// c.at stands then.
func (c *cursor) more() (bool, error) {
	c.at = skipSpace(c.p, c.at)
	switch {
	case c.at >= len(c.p):
		return false, malformed(c.at)
	case c.p[c.at] == c.close:
		c.at++
		return false, nil
	case c.first:
		c.first = false
		return true, nil
	case c.p[c.at] != ',':
		return false, malformed(c.at)
	}
	c.at = skipSpace(c.p, c.at+1)
	return true, nil
}

// key reads the key of a member up to the value, which begins at c.at then.
func (c *cursor) key() (span, error) {
	end, err := skipString(c.p, c.at)
	if err != nil {
		return span{}, err
	}
	key := span{c.at, end}
	colon := skipSpace(c.p, end)
	if colon >= len(c.p) || c.p[colon] != ':' {
		return key, malformed(colon)
	}
	c.at = skipSpace(c.p, colon+1)
	return key, nil
}

// value reads a value.
func (c *cursor) value() (span, error) {
	end, err := skipValue(c.p, c.at)
	s := span{c.at, end}
	c.at = end
	return s, err
}

// findMember returns where the value of a member of an object is, of the last one if there
// are several. ok is false if there is none, or if p is no such object.
func findMember(p []byte, name string) (value span, ok bool) {
	if len(name) <= maxQuick && bytes.IndexByte(p, '\\') < 0 {
		return findPlain(p, name)
	}
	c, err := enter(p, skipSpace(p, 0), '{')
	if err != nil {
		return span{}, false
	}
	return c.find(name)
}

// maxQuick is how long a name may be that findPlain looks for.
const maxQuick = 62

// findPlain is findMember in an object without escapes: there the name in quotes is a string
// of its own wherever it stands. If what follows it are members up to the end of the
// object, it is a key of the object and not of one inside.
func findPlain(p []byte, name string) (value span, ok bool) {
	var few [maxQuick + 2]byte
	quoted := append(append(append(few[:0], '"'), name...), '"')
	for from := 0; ; {
		i := bytes.Index(p[from:], quoted)
		if i < 0 {
			return span{}, false
		}
		from += i
		c := cursor{p: p, at: from, close: '}', first: true}
		if value, ok = c.find(name); ok && skipSpace(p, c.at) == len(p) {
			return value, true
		}
		from += len(quoted)
	}
}

// find goes through the members that are left, see findMember.
func (c *cursor) find(name string) (value span, ok bool) {
	for {
		more, err := c.more()
		if err != nil || !more {
			return value, ok && err == nil
		}
		key, err := c.key()
		if err != nil {
			return span{}, false
		}
		v, err := c.value()
		if err != nil {
			return span{}, false
		}
		if sameKey(key.of(c.p), name) {
			value, ok = v, true
		}
	}
}

// unquote returns the content of a string with its quotes; it allocates only where there
// is an escape.
func unquote(quoted []byte) ([]byte, error) {
	inner := quoted[1 : len(quoted)-1]
	for _, b := range inner {
		if b == '\\' || b < ' ' {
			var s string
			if err := json.Unmarshal(quoted, &s); err != nil {
				return nil, fmt.Errorf("%w: string %q", errJSON, quoted)
			}
			return []byte(s), nil
		}
	}
	return inner, nil
}
