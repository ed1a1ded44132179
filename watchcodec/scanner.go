package watchcodec

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
	for i, b := range p {
		switch {
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped = true
		case b == '"':
			s.inString = false
			return i
		}
	}
	return len(p) - 1
}
