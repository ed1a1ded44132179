package watchcodec

import (
	"encoding/binary"
	"math/bits"
)

// scanner finds the end of a JSON object over any number of pieces.
type scanner struct {
	depth    int
	inString bool
	escaped  bool
}

// skip goes on with p and returns how many bytes of it belong to the object, and
// whether the object ended with them.
func (s *scanner) skip(p []byte) (n int, complete bool) {
	for i := 0; i < len(p); i++ {
		if s.inString {
			i += s.skipString(p[i:])
			continue
		}
		switch p[i] {
		case '"':
			s.inString = true
		case '{', '[':
			s.depth++
		case '}', ']':
			s.depth--
			if s.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(p), false
}

// skipString goes on within a string and returns the index of its closing
// quote, or of the last byte of p.
func (s *scanner) skipString(p []byte) int {
	i := 0
	if s.escaped && len(p) > 0 {
		i, s.escaped = 1, false
	}
	end, escaped := stringEnd(p, i)
	if end < 0 {
		s.escaped = escaped
		return len(p) - 1
	}
	s.inString = false
	return end
}

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// stringEnd returns the index of the quote that closes the string of which p[i:] is the
// rest. It is -1 if there is none, and escaped says then whether p ends behind a
// backslash that escapes what follows.
func stringEnd(p []byte, i int) (end int, escaped bool) {
	for i+8 <= len(p) {
		// The lowest byte that is a quote or a backslash has its high bit set; what is
		// above it may be wrong.
		w := binary.LittleEndian.Uint64(p[i:])
		q, b := w^quotes, w^slashes
		found := ((q-ones)&^q | (b-ones)&^b) & highs
		if found == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(found) / 8
		if p[i] == '"' {
			return i, false
		}
		i += 2
	}
	for ; i < len(p); i++ {
		switch p[i] {
		case '"':
			return i, false
		case '\\':
			i++
		}
	}
	return -1, i > len(p)
}
