package watchcodec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
)

// maxDepth bounds the nesting of JSON, as in encoding/json.
const maxDepth = 10000

var errJSON = errors.New("watchcodec: malformed JSON")

func malformed(i int) error { return fmt.Errorf("%w at byte %d", errJSON, i) }

// skipSpace returns the index of the first byte at or after i that is no white space.
func skipSpace(p []byte, i int) int {
	for i < len(p) && isSpace(p[i]) {
		i++
	}
	return i
}

// stringEnd returns the index of the quote that closes the string of which p[i:] is the rest, -1 if
// there is none.
func stringEnd(p []byte, i int) int {
	end, _ := findStringEnd(p, i)
	return end
}

// findStringEnd is stringEnd, and returns the index at which to continue when more of p is
// received.
func findStringEnd(p []byte, i int) (end, next int) {
	for i+8 <= len(p) {
		// The lowest byte that is a quote or a backslash has its high bit set; the bits above it
		// may be wrong.
		w := binary.LittleEndian.Uint64(p[i:])
		q, b := w^quotes, w^slashes
		found := ((q-ones)&^q | (b-ones)&^b) & highs
		if found == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(found) / 8
		if p[i] == '"' {
			return i, i
		}
		i += 2
	}
	for ; i < len(p); i++ {
		switch p[i] {
		case '"':
			return i, i
		case '\\':
			i++
		}
	}
	return -1, i
}

// skipString returns the index after the string that begins at p[i].
func skipString(p []byte, i int) (int, error) {
	if i >= len(p) || p[i] != '"' {
		return i, malformed(i)
	}
	end := stringEnd(p, i+1)
	if end < 0 {
		return len(p), malformed(len(p))
	}
	return end + 1, nil
}

// skipValue returns the index after the value that begins at p[i]. It checks that as many brackets
// are closed as opened, of either kind. It does not check the syntax of numbers and literals.
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
	for ; i < len(p) && !isSpace(p[i]) && p[i] != ',' && p[i] != '}' && p[i] != ']'; i++ {
		switch p[i] {
		case '"', '{', '[', ':', '\\':
			return i, malformed(i) // decoders would not agree on where it ends
		}
	}
	return i, nil
}

// skipNested returns the index after the object or array that begins at p[i].
func skipNested(p []byte, i int) (int, error) {
	var w window
	return w.skip(p, i)
}

// span is a part of some bytes. The zero span is none.
type span struct{ start, end int }

func (s span) of(p []byte) []byte { return p[s.start:s.end] }

// cursor iterates over the members of an object or the elements of an array.
type cursor struct {
	p     []byte
	at    int
	close byte
	first bool
	w     *window // shared by the cursors over the same bytes; may be nil
}

// enter returns a cursor after the bracket p[i], which must be open.
func enter(p []byte, i int, open byte, w *window) (cursor, error) {
	if i >= len(p) || p[i] != open {
		return cursor{}, malformed(i)
	}
	return cursor{p: p, at: i + 1, close: open + 2, first: true, w: w}, nil
}

// more moves c.at to the next element and returns true. At the closing bracket it moves c.at past
// it and returns false.
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

// key returns the key of a member and moves c.at to the member's value.
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

// value returns the value at c.at and moves c.at past it.
func (c *cursor) value() (s span, err error) {
	s.start = c.at
	if c.w != nil && c.at < len(c.p) && (c.p[c.at] == '{' || c.p[c.at] == '[') {
		c.at, err = c.w.skip(c.p, c.at)
	} else {
		c.at, err = skipValue(c.p, c.at)
	}
	s.end = c.at
	return s, err
}

// findMember returns the value of a member of the object p, the last one if there are several. ok
// is false if there is none, or if p is not an object.
func findMember(p []byte, name string) (value span, ok bool) {
	if len(name) <= maxQuick && bytes.IndexByte(p, '\\') < 0 {
		return findPlain(p, name)
	}
	c, err := enter(p, skipSpace(p, 0), '{', nil)
	if err != nil {
		return span{}, false
	}
	return c.find(name)
}

// maxQuick bounds the length of a name that findPlain looks for.
const maxQuick = 62

// findPlain is findMember for an object without escapes, in which the quoted name is a string of
// its own wherever it occurs. If members follow it up to the end of the object, it is a key of the
// object and not of one inside.
func findPlain(p []byte, name string) (value span, ok bool) {
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
		c := cursor{p: p, at: from - 1, close: '}', first: true}
		if value, ok = c.find(name); ok && skipSpace(p, c.at) == len(p) {
			return value, true
		}
	}
	return span{}, false
}

// find looks for a name in the remaining members, see findMember.
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

// unquote returns the content of a quoted string. It allocates only if there is an escape.
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
