package watchcodec

// scanner finds the end of a JSON object or array over any number of pieces.
type scanner struct {
	nesting
	quoting
}

// skip goes on with p and returns how many bytes of it belong to the value, and whether
// the value ended with them.
func (s *scanner) skip(p []byte) (n int, complete bool) {
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

// skipRest goes on with less than a block.
func (s *scanner) skipRest(p []byte, at int) (n int, complete bool) {
	left := len(p) - at
	if left == 0 {
		return len(p), false
	}
	b := partialBlock(p[at:])
	// What the last byte escapes is behind it, and not a byte that was made up.
	_, behind := escaped(b.backslash<<(blockSize-left), s.escaped<<(blockSize-left))
	s.strip(&b)
	if end := s.add(b.open, b.close, b.curly); end >= 0 {
		return at + end, true
	}
	s.quoting.escaped = behind
	return len(p), false
}

// partialBlock looks at less than a block, behind which it takes nothing to be.
func partialBlock(p []byte) block {
	var whole [blockSize]byte
	var blocks [1]block
	copy(whole[:], p)
	classify(whole[:], blocks[:])
	return blocks[0]
}
