package watchcodec

import "bytes"

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
	if s.escaped {
		i = 1
	}
	end := stringEnd(p, i)
	if end >= 0 {
		s.inString, s.escaped = false, false
		return end
	}
	if i < len(p) {
		s.escaped = backslashes(p[i:])%2 == 1
	} else {
		s.escaped = s.escaped && len(p) == 0
	}
	return len(p) - 1
}

// stringEnd returns the index of the quote that closes the string of which p[i:] is the
// rest, -1 if there is none.
func stringEnd(p []byte, i int) int {
	for {
		q := bytes.IndexByte(p[i:], '"')
		if q < 0 {
			return -1
		}
		if q == 0 || p[i+q-1] != '\\' || backslashes(p[i:i+q])%2 == 0 {
			return i + q
		}
		i += q + 1
	}
}

// backslashes counts those at the end of p.
func backslashes(p []byte) int {
	n := 0
	for n < len(p) && p[len(p)-1-n] == '\\' {
		n++
	}
	return n
}
