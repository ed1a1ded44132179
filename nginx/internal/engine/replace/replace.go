// Package replace replaces texts in a stream, without regard to case, as nginx's
// sub_filter does.
package replace

import "io"

// Pair is a text and what stands for it.
type Pair struct{ From, To string }

// Writer writes what it is given to another writer, replaced. At a place where several
// texts begin the first one counts. It holds no more than the longest text.
type Writer struct {
	w     io.Writer
	once  bool
	pairs []pair
	begin [256]bool // bytes that a text begins with, in either case
	held  []byte    // what may be the beginning of a text
	ended bool      // nothing more comes
	out   []byte
}

type pair struct {
	from []byte // in lower case
	to   string
	done bool
}

// NewWriter returns a Writer. once replaces each text only where it is met first. Close
// writes what is held.
func NewWriter(w io.Writer, once bool, pairs []Pair) *Writer {
	r := &Writer{w: w, once: once}
	for _, p := range pairs {
		from := make([]byte, len(p.From))
		for i := range from {
			from[i] = lower(p.From[i])
		}
		r.pairs = append(r.pairs, pair{from: from, to: p.To})
	}
	r.index()
	return r
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

// index notes the bytes that texts begin with which are still looked for.
func (r *Writer) index() {
	r.begin = [256]bool{}
	for _, p := range r.pairs {
		if p.done {
			continue
		}
		c := p.from[0]
		r.begin[c] = true
		if c >= 'a' && c <= 'z' {
			r.begin[c-('a'-'A')] = true
		}
	}
}

// Write replaces in b. What may go on in the next call is held back.
func (r *Writer) Write(b []byte) (int, error) {
	data := b
	if len(r.held) > 0 {
		data = append(r.held, b...)
	}
	r.out = r.out[:0]
	rest := r.replace(data)
	_, err := r.w.Write(r.out)
	r.held = append(r.held[:0], rest...)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// replace appends to r.out and returns what may be the beginning of a text.
func (r *Writer) replace(data []byte) (rest []byte) {
	start := 0
	for i := 0; i < len(data); i++ {
		if !r.begin[data[i]] {
			continue
		}
		p, partly := r.at(data[i:])
		if p == nil {
			if partly {
				r.out = append(r.out, data[start:i]...)
				return data[i:]
			}
			continue
		}
		r.out = append(append(r.out, data[start:i]...), p.to...)
		i += len(p.from) - 1
		start = i + 1
		if r.once {
			p.done = true
			r.index()
		}
	}
	r.out = append(r.out, data[start:]...)
	return nil
}

// at finds the text that data begins with; partly says that one may, if there were more.
func (r *Writer) at(data []byte) (found *pair, partly bool) {
	for i := range r.pairs {
		p := &r.pairs[i]
		if p.done {
			continue
		}
		n := min(len(data), len(p.from))
		if !same(data[:n], p.from[:n]) {
			continue
		}
		if n == len(p.from) {
			return p, false
		}
		if !r.ended {
			return nil, true // this one comes first, if it is one
		}
	}
	return nil, false
}

func same(b, lowered []byte) bool {
	for i, c := range b {
		if lower(c) != lowered[i] {
			return false
		}
	}
	return true
}

// Flush is for streams: what is held is held on, so that no text is torn.
func (r *Writer) Flush() error { return nil }

// Close writes what was held: it has turned out to be nothing, or something shorter.
func (r *Writer) Close() error {
	r.ended, r.out = true, r.out[:0]
	r.replace(r.held)
	r.held = nil
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.w.Write(r.out)
	return err
}
