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

// fail lets the link's fault happen after the bytes that were written. The caller holds h.mu.
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

// close closes the reader's side. Unread bytes cause a reset, as in Linux: at once, or when
// they arrive if they are on their way. The caller holds h.mu.
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

// meetClosed handles a segment that arrives at a closed socket: it causes a reset (RFC 9293
// section 3.10.7.1). The caller holds h.mu.
func (h *half) meetClosed() {
	if !h.reset && !h.finArrived(time.Now()) {
		h.breakOff()
	}
}

// breakOff resets the connection: data that was not read is lost in both directions. The
// caller holds h.mu.
func (h *half) breakOff() {
	for _, side := range []*half{h, h.twin} {
		side.reset = true
		side.sent, side.segments, side.arrived = fifo{}, nil, 0
		side.reader.wake()
		side.writer.wake()
	}
}
