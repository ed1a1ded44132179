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

// sendingSince returns when the writer sent the first byte behind those that had all been read.
func (h *half) sendingSince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}
