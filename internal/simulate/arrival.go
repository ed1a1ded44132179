package simulate

import "time"

// arrival returns when the last byte that was written, or the end of the writes, arrives at the reader, and reports
// whether it does. The time is now if all has arrived.
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

// begunAt is the position at which a response begins in what one end of a connection writes.
type begunAt struct {
	out  *half // nil: not known
	from int64
}

// nextResponse returns where the response to a request begins, before any byte of it is written.
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

// lastWord is the arrival of the last byte that an end of a connection had written.
type lastWord struct {
	out *half // nil: not known
	at  time.Time
}

// lastWord returns when the last byte arrives that was written before the call.
func (c *Conn) lastWord() lastWord {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return lastWord{c.out, c.out.last}
}

// missed reports whether the other end had closed the connection before that byte arrived.
func (l lastWord) missed() bool {
	if l.out == nil {
		return false
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.out.closed && !l.out.closedAt.After(l.at)
}

// lost reports whether bytes that were written will never arrive.
func (h *half) lost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.void > 0
}

// sendingSince returns when the writer sent the first byte that the reader has not read.
func (h *half) sendingSince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}
