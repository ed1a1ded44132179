package scan

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
)

// maxDepth bounds the nesting of JSON, as in encoding/json.
const maxDepth = 10000

// ErrJSON is the error of a text that is not JSON.
var ErrJSON = errors.New("watchcodec: malformed JSON")

// Malformed returns ErrJSON with the index at which the text is not JSON.
func Malformed(i int) error { return fmt.Errorf("%w at byte %d", ErrJSON, i) }

// SkipSpace returns the index of the first byte at or after i that is no white space.
func SkipSpace(p []byte, i int) int {
	for i < len(p) && IsSpace(p[i]) {
		i++
	}
	return i
}

// IsSpace reports whether b is white space in JSON.
func IsSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// StringEnd returns the index of the quote that closes the string of which p[i:] is the rest, -1 if
// there is none.
func StringEnd(p []byte, i int) int {
	end, _ := FindStringEnd(p, i)
	return end
}

// FindStringEnd is StringEnd, and returns the index at which to continue when more of p is
// received.
func FindStringEnd(p []byte, i int) (end, next int) {
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
		return i, Malformed(i)
	}
	end := StringEnd(p, i+1)
	if end < 0 {
		return len(p), Malformed(len(p))
	}
	return end + 1, nil
}

// SkipValue returns the index after the value that begins at p[i]. It checks that as many brackets
// are closed as opened, of either kind. It does not check the syntax of numbers and literals.
func SkipValue(p []byte, i int) (int, error) {
	if i >= len(p) {
		return i, Malformed(i)
	}
	switch p[i] {
	case '"':
		return skipString(p, i)
	case '{', '[':
		return skipNested(p, i)
	case '}', ']', ',', ':':
		return i, Malformed(i)
	}
	for ; i < len(p) && !IsSpace(p[i]) && p[i] != ',' && p[i] != '}' && p[i] != ']'; i++ {
		switch p[i] {
		case '"', '{', '[', ':', '\\':
			return i, Malformed(i) // decoders would not agree on where it ends
		}
	}
	return i, nil
}

// skipNested returns the index after the object or array that begins at p[i].
func skipNested(p []byte, i int) (int, error) {
	var w Window
	return w.Skip(p, i)
}

// Unquote returns the content of a quoted string. It allocates only if there is an escape.
func Unquote(quoted []byte) ([]byte, error) {
	inner := quoted[1 : len(quoted)-1]
	for _, b := range inner {
		if b == '\\' || b < ' ' {
			var s string
			if err := json.Unmarshal(quoted, &s); err != nil {
				return nil, fmt.Errorf("%w: string %q", ErrJSON, quoted)
			}
			return []byte(s), nil
		}
	}
	return inner, nil
}
