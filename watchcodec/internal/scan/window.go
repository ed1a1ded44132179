package scan

import "fmt"

// Window holds the classified blocks of a part of a text, for values that are skipped one after the
// other: if they are short, several are in a block.
type Window struct {
	base   int // index of the first block in the text
	n      int // number of blocks
	quotes quoting
	blocks [16]block // stripped
}

// Reset empties w, so that it can be used for another text.
func (w *Window) Reset() { w.n = 0 }

// Skip returns the index after the object or array that begins at p[i]. All calls must be for the
// same p, with increasing i.
func (w *Window) Skip(p []byte, i int) (int, error) {
	if end := w.base + w.n*blockSize; w.n == 0 || i >= end {
		w.base, w.n, w.quotes = i, 0, quoting{}
		w.load(p, 2)
	}
	var n nesting
	at := (i - w.base) / blockSize
	mask := ^uint64(0) << ((i - w.base) % blockSize)
	for {
		for ; at < w.n; at++ {
			b := &w.blocks[at]
			if end := n.add(b.open&mask, b.close&mask, b.curly); end >= 0 {
				end += w.base + at*blockSize
				if n.deep {
					return i, fmt.Errorf("%w: nested too deeply after byte %d", ErrJSON, i)
				}
				if n.curly != 0 {
					return end, Malformed(end)
				}
				return end, nil
			}
			mask = ^uint64(0)
		}
		if at = 0; !w.load(p, 2*w.n) {
			return len(p), Malformed(len(p))
		}
	}
}

// load classifies the next blocks. It returns false if there are none.
func (w *Window) load(p []byte, most int) bool {
	w.base += w.n * blockSize
	rest := p[min(w.base, len(p)):]
	w.n = min(most, len(w.blocks), len(rest)/blockSize)
	classify(rest, w.blocks[:w.n])
	if w.n == 0 && len(rest) > 0 {
		w.blocks[0], w.n = partialBlock(rest), 1
	}
	for i := range w.blocks[:w.n] {
		w.quotes.strip(&w.blocks[i])
	}
	return w.n > 0
}
