package engine

import "io"

// window is the part of a content from and up to but not including to, of which the pieces are received one after another.
type window struct {
	at       int64 // the place of the next byte that is received
	from, to int64
}

// write writes to w what the window has of p, and returns the length of p.
func (c *window) write(w io.Writer, p []byte) (int, error) {
	n := len(p)
	first, last := max(c.from-c.at, 0), min(c.to-c.at, int64(n))
	c.at += int64(n)
	if first >= last {
		return n, nil
	}
	if _, err := w.Write(p[first:last]); err != nil {
		return 0, err
	}
	return n, nil
}
