package scan

import "math/bits"

// quoting is the state of strings between one block and the next.
type quoting struct {
	inside  uint64 // all bits are set within a string, none outside
	escaped uint64 // 1 if the next byte is escaped by a backslash
}

// strip removes the brackets within strings from a block.
func (q *quoting) strip(b *block) {
	quote := b.quote
	if b.backslash|q.escaped != 0 {
		var mask uint64
		mask, q.escaped = escaped(b.backslash, q.escaped)
		quote &^= mask
	}
	in := inStrings(quote) ^ q.inside
	q.inside = uint64(int64(in) >> 63)
	b.open &^= in
	b.close &^= in
}

// nesting finds the end of an object or array. It counts brackets, square and curly ones apart, and
// does not match them one by one: for malformed JSON it may find another end than a decoder, had
// that not failed before.
type nesting struct {
	depth int  // of open brackets
	curly int  // of open curly brackets
	deep  bool // more than maxDepth were open
}

// add processes the brackets of a block. It returns the index in the block after the value, -1 if
// the value continues after the block.
func (n *nesting) add(open, closing, curly uint64) int {
	opens, closes := bits.OnesCount64(open), bits.OnesCount64(closing)
	if closes >= n.depth || n.depth+opens > maxDepth {
		return n.step(open, closing, curly)
	}
	n.depth += opens - closes
	n.curly += bits.OnesCount64(open&curly) - bits.OnesCount64(closing&curly)
	return -1
}

// step is add, one bracket at a time.
func (n *nesting) step(open, closing, curly uint64) int {
	for brackets := open | closing; brackets != 0; brackets &= brackets - 1 {
		bit := brackets & -brackets
		change := 1
		if closing&bit != 0 {
			change = -1
		}
		n.depth += change
		n.deep = n.deep || n.depth > maxDepth
		if curly&bit != 0 {
			n.curly += change
		}
		if n.depth <= 0 {
			return bits.TrailingZeros64(bit) + 1
		}
	}
	return -1
}
