package simulate

import "time"

// at calls event, with h.mu held, at a time.
func (h *half) at(t time.Time, event func()) {
	time.AfterFunc(time.Until(t), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		event()
	})
}

// fail is the fault of the link, behind what was written. The caller holds h.mu.
func (h *half) fail() {
	k := h.link.Fault.Kind
	if k != NoFault {
		h.faults.Add("link "+k.String(), 1)
	}
	switch k {
	case FaultPause:
		h.last = h.nextArrival().Add(h.link.Fault.Pause)
	case FaultReset:
		h.last = h.nextArrival()
		h.at(h.last, h.breakOff)
	case FaultFIN:
		h.sendFIN()
	case FaultSilence:
		h.silent = true
	}
}

// sendFIN ends what the reader reads. The caller holds h.mu.
func (h *half) sendFIN() {
	h.last = h.nextArrival()
	if h.finAt.IsZero() {
		h.finAt = h.last
		h.reader.wakeAt(h.last)
	}
}

// end ends the direction behind what was written: a FIN. The caller holds h.mu.
func (h *half) end() {
	if h.ended {
		return
	}
	h.ended = true
	h.writer.wake()
	if !h.silent && !h.reset {
		h.sendFIN()
	}
}

// close ends the reader's interest. Unread bytes make it a reset, as in Linux; those
// that are on their way do when they arrive. The caller holds h.mu.
func (h *half) close() {
	if h.closed {
		return
	}
	h.closed, h.closedAt = true, time.Now()
	h.reader.wake()
	h.arrive(time.Now())
	switch {
	case h.arrived > 0:
		h.breakOff()
	case len(h.segments) > 0:
		h.at(h.segments[0].at, h.meetClosed)
	}
}

// meetClosed is a segment that arrives at a closed socket: it causes a reset (RFC 9293
// section 3.10.7.1). The caller holds h.mu.
func (h *half) meetClosed() {
	if !h.reset && !h.finArrived(time.Now()) {
		h.breakOff()
	}
}

// breakOff is a reset: what has not been read is lost in both directions. The caller
// holds h.mu.
func (h *half) breakOff() {
	for _, side := range []*half{h, h.twin} {
		side.reset = true
		side.sent, side.segments, side.arrived = fifo{}, nil, 0
		side.reader.wake()
		side.writer.wake()
	}
}
