package scan

// Scanner finds the end of a JSON object or array that is received in any number of pieces.
type Scanner struct {
	nesting
	quoting
}

// Within reports whether a value has begun and not ended.
func (s *Scanner) Within() bool { return s.depth > 0 }

// Skip continues with p. It returns how many bytes of p belong to the value, and reports whether
// the value ends with them.
func (s *Scanner) Skip(p []byte) (n int, complete bool) {
	var blocks [16]block
	for at, size := 0, 1; ; size = min(2*size, len(blocks)) { // most values are short
		m := min(size, (len(p)-at)/blockSize)
		if m == 0 {
			return s.skipRest(p, at)
		}
		classify(p[at:], blocks[:m])
		for i := range blocks[:m] {
			b := &blocks[i]
			s.strip(b)
			if end := s.add(b.open, b.close, b.curly); end >= 0 {
				return at + end, true
			}
			at += blockSize
		}
	}
}

// skipRest continues with less than a block.
func (s *Scanner) skipRest(p []byte, at int) (n int, complete bool) {
	left := len(p) - at
	if left == 0 {
		return len(p), false
	}
	b := partialBlock(p[at:])
	// The byte that the last one escapes is after the partial block, and not one of its padding.
	_, next := escaped(b.backslash<<(blockSize-left), s.escaped<<(blockSize-left))
	s.strip(&b)
	if end := s.add(b.open, b.close, b.curly); end >= 0 {
		return at + end, true
	}
	s.quoting.escaped = next
	return len(p), false
}

// partialBlock classifies less than a block. The bytes after p have no bits set.
func partialBlock(p []byte) block {
	var whole [blockSize]byte
	var blocks [1]block
	copy(whole[:], p)
	classify(whole[:], blocks[:])
	return blocks[0]
}
