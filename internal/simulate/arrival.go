package simulate

import "time"

// arrival returns when the last of what was written arrives at the reader, or its end, and whether it does. It is now if
// all has arrived.
func (h *half) arrival() (at time.Time, arrives bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at = time.Now()
	if n := len(h.segments); n > 0 && h.segments[n-1].at.After(at) {
		at = h.segments[n-1].at
	}
	if h.finAt.After(at) {
		at = h.finAt
	}
	return at, !h.silent
}

// begunAt is where a response begins in what an end of a connection writes.
type begunAt struct {
	out  *half // nil: not known
	from int64
}

// nextResponse returns where the response to a request begins of which nothing has been written.
func (c *Conn) nextResponse() begunAt {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return begunAt{c.out, c.out.written}
}

// seen reports whether the other end has read a byte of the response.
func (b begunAt) seen() bool {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	return b.out.taken > b.from
}

// lastWord is what was written last by then.
type lastWord struct {
	out *half // nil: not known
	at  time.Time
}

// lastWord returns when what has been written last arrives.
func (c *Conn) lastWord() lastWord {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return lastWord{c.out, c.out.last}
}

// missed reports whether the other end had closed the connection by the time that it arrived.
func (l lastWord) missed() bool {
	if l.out == nil {
		return false
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.out.closed && !l.out.closedAt.After(l.at)
}

// sendingSince returns when the writer sent the first byte behind those that had all been read.
func (h *half) sendingSince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}
