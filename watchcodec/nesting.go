package watchcodec

import "math/bits"

// quoting carries strings from one block to the next.
type quoting struct {
	inside  uint64 // all bits set within a string, else none
	escaped uint64 // 1 behind a backslash that escapes what follows
}

// strip leaves of a block's brackets those that stand outside strings.
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

// nesting finds the end of an object or array. Brackets are counted, square and curly ones
// apart, and not matched one by one: of what is no JSON the end may be elsewhere than a
// decoder would see it, had it not failed before.
type nesting struct {
	depth int  // of brackets
	curly int  // of those, curly ones
	deep  bool // more than maxDepth have been open
}

// add goes on with the brackets of a block and returns the index in it behind the value,
// -1 if the value goes on behind the block.
func (n *nesting) add(open, closing, curly uint64) int {
	opens, closes := bits.OnesCount64(open), bits.OnesCount64(closing)
	if closes >= n.depth || n.depth+opens > maxDepth {
		return n.step(open, closing, curly)
	}
	n.depth += opens - closes
	n.curly += bits.OnesCount64(open&curly) - bits.OnesCount64(closing&curly)
	return -1
}

// step goes from one bracket to the next.
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
