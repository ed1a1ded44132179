// Package replace replaces texts in a stream, without regard to case, as nginx's
// sub_filter does.
package replace

import "io"

// Pair is a text and its replacement.
type Pair struct{ From, To string }

// Writer replaces texts in what is written to it and passes the result on to another writer. If
// several texts begin at one place the first one is replaced. It buffers no more than the longest
// text.
type Writer struct {
	w          io.Writer
	once       bool
	pairs      []pair
	firstBytes [256]bool // first bytes of the texts, in either case
	buffered   []byte    // a possible beginning of a text
	ended      bool      // no more data will be written
	out        []byte
}

type pair struct {
	from []byte // in lower case
	to   string
	done bool
}

// NewWriter returns a Writer. If once is set, each text is replaced only where it is first found.
// Close writes what is buffered.
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

// index records the first bytes of the texts that are still looked for.
func (r *Writer) index() {
	r.firstBytes = [256]bool{}
	for _, p := range r.pairs {
		if p.done {
			continue
		}
		c := p.from[0]
		r.firstBytes[c] = true
		if c >= 'a' && c <= 'z' {
			r.firstBytes[c-('a'-'A')] = true
		}
	}
}

// Write replaces in b. What may continue in the next call is buffered.
func (r *Writer) Write(b []byte) (int, error) {
	data := b
	if len(r.buffered) > 0 {
		data = append(r.buffered, b...)
	}
	r.out = r.out[:0]
	rest := r.replace(data)
	_, err := r.w.Write(r.out)
	r.buffered = append(r.buffered[:0], rest...)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// replace appends to r.out and returns the possible beginning of a text.
func (r *Writer) replace(data []byte) (rest []byte) {
	start := 0
	for i := 0; i < len(data); i++ {
		if !r.firstBytes[data[i]] {
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

// at returns the text that data begins with; partly reports whether one may begin there, if there
// were more data.
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
			return nil, true // this one comes first, if it is complete
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

// Flush is for streams. What is buffered is kept, so that no text is split.
func (r *Writer) Flush() error { return nil }

// Close writes what was buffered: it is no text, or contains a shorter one.
func (r *Writer) Close() error {
	r.ended, r.out = true, r.out[:0]
	r.replace(r.buffered)
	r.buffered = nil
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.w.Write(r.out)
	return err
}
