package simulate

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// half is one direction of a connection: what one end writes arrives at the other end
// after a while, in segments cut anywhere. What is on its way or unread counts against a
// window, so that a reader who stops makes the writer wait. Both halves of a connection
// share one mutex, since a reset ends both.
type half struct {
	mu     *sync.Mutex
	twin   *half
	link   Link
	random *rand.Rand    // cuts and jitter
	offset time.Duration // of this half's arrivals in a microsecond

	changed sync.Cond
	held    []byte    // arrived and unread
	flying  int       // bytes on their way
	last    time.Time // when the latest segment arrives
	written int64     // since the beginning
	silent  bool      // what is written does not arrive any more
	ended   bool      // by the writer
	arrived bool      // the writer's end has
	closed  bool      // by the reader
	reset   bool
	reader  deadline
	writer  deadline
	faults  *Tally
}

// init prepares h. Both halves share mu.
func (h *half) init(mu *sync.Mutex, twin *half, link Link, offset time.Duration, faults *Tally) {
	h.mu, h.twin, h.link, h.offset, h.faults = mu, twin, link, offset, faults
	h.random = rand.New(rand.NewPCG(link.Seed, uint64(offset)))
	h.changed.L = mu
}

// read is that of the reader's end.
func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.closed:
			return 0, net.ErrClosed
		case h.reader.over:
			return 0, os.ErrDeadlineExceeded
		case h.reset:
			return 0, syscall.ECONNRESET
		case len(h.held) > 0 || len(p) == 0:
			n := copy(p, h.held)
			h.held = h.held[n:]
			h.changed.Broadcast()
			return n, nil
		case h.arrived:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

// write is that of the writer's end.
func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		room := h.link.Window - h.flying - len(h.held)
		switch {
		case h.ended:
			return n, net.ErrClosed
		case h.writer.over:
			return n, os.ErrDeadlineExceeded
		case h.reset:
			return n, syscall.EPIPE
		case n == len(p):
			return n, nil
		case room > 0:
			m := min(len(p)-n, room)
			h.send(p[n : n+m])
			n += m
		default:
			h.changed.Wait()
		}
	}
}

// send puts p on its way, in segments. The caller holds h.mu.
func (h *half) send(p []byte) {
	for len(p) > 0 {
		m := len(p)
		if h.link.Segment > 0 {
			segment := h.link.Segment
			if h.written > smallSegments {
				segment = max(segment, 4<<10)
			}
			m = min(m, 1+h.random.IntN(segment))
		}
		before := h.written
		if f := h.link.Fault; f.Kind != NoFault && before < f.At && before+int64(m) > f.At {
			m = int(f.At - before) // the fault hits between two segments
		}
		h.written += int64(m)
		h.flying += m
		if !h.silent {
			h.deliver(append([]byte(nil), p[:m]...))
		}
		if h.written == h.link.Fault.At {
			h.fail()
		}
		p = p[m:]
	}
}

// deliver lets a segment arrive. The caller holds h.mu.
func (h *half) deliver(segment []byte) {
	h.later(func() {
		h.flying -= len(segment)
		switch {
		case h.reset, h.arrived: // lost
		case h.closed:
			h.breakOff() // a segment for a closed socket causes a reset (RFC 9293 section 3.10.7.1)
		default:
			h.held = append(h.held, segment...)
		}
	})
}

// fail is the fault of the link. The caller holds h.mu.
func (h *half) fail() {
	if k := h.link.Fault.Kind; k != NoFault {
		h.faults.Add("link "+k.String(), 1)
	}
	switch h.link.Fault.Kind {
	case FaultPause:
		h.last = h.nextArrival().Add(h.link.Fault.Pause)
	case FaultReset:
		h.later(h.breakOff)
	case FaultFIN:
		h.later(func() { h.arrived = true })
	case FaultSilence:
		h.silent = true
	}
}

// later calls event, with h.mu held, when what is written now arrives. Each event of a
// history has an instant of its own, so that everything that follows from it has
// happened before the next one: the order of events is the plan's, not the scheduler's.
func (h *half) later(event func()) {
	h.last = h.nextArrival()
	time.AfterFunc(time.Until(h.last), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		event()
		h.changed.Broadcast()
	})
}

// nextArrival returns when what is written now arrives. The caller holds h.mu.
func (h *half) nextArrival() time.Time {
	at := time.Now().Add(h.link.Delay)
	if h.link.Jitter > 0 {
		at = at.Add(time.Duration(h.random.Int64N(int64(h.link.Jitter))))
	}
	at = at.Truncate(instant).Add(instant + h.offset)
	for !at.After(h.last) {
		at = h.last.Truncate(instant).Add(instant + h.offset)
	}
	return at
}

// smallSegments is how many bytes of a direction are cut into small segments: headers and
// the beginnings of bodies. Behind them that would cost much and find little.
const smallSegments = 2 << 10

// instant is the distance of two arrivals of one half. Halves differ in their offsets.
const instant = 10 * time.Microsecond

// end ends the direction behind what was written: a FIN. The caller holds h.mu.
func (h *half) end() {
	if h.ended {
		return
	}
	h.ended = true
	h.changed.Broadcast()
	if !h.silent && !h.reset {
		h.later(func() { h.arrived = true })
	}
}

// close ends the reader's interest. Unread bytes make it a reset, as in Linux. The
// caller holds h.mu.
func (h *half) close() {
	if h.closed {
		return
	}
	h.closed = true
	h.changed.Broadcast()
	if len(h.held) > 0 {
		h.breakOff()
	}
}

// breakOff is a reset: what has not been read is lost in both directions. The caller
// holds h.mu.
func (h *half) breakOff() {
	for _, side := range []*half{h, h.twin} {
		side.reset = true
		side.held = nil
		side.changed.Broadcast()
	}
}
