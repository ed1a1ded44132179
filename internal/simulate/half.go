package simulate

import (
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// half is one direction of a connection: bytes that one end writes arrive at the other end
// after a while, in segments cut anywhere. Bytes on their way or unread count against a
// window, so that a reader that stops makes the writer wait. Both halves of a connection
// share one mutex, since a reset ends both.
//
// A segment has arrived as soon as its time is reached: only a reader that waits for it needs
// a timer. Effects of a segment that need no reader are events (events.go).
type half struct {
	mu     *sync.Mutex
	twin   *half
	link   Link
	random rand.PCG      // cuts and jitter
	offset time.Duration // of this half's arrivals in an instant

	sent     fifo      // unread, on its way or arrived
	void     int       // bytes that never arrive, and count against the window
	segments []segment // those of sent that are on their way
	slots    []segment // the memory of segments
	arrived  int       // bytes of sent that have arrived
	since    time.Time // when the first byte was written that is unread
	last     time.Time // when the latest segment arrives
	written  int64     // since the beginning
	taken    int64     // by the reader, since the beginning
	cuts     int       // segments so far, where the link cuts
	silent   bool      // bytes that are written no longer arrive
	ended    bool      // by the writer
	finAt    time.Time // when the writer's end arrives; zero: never
	closed   bool      // by the reader
	closedAt time.Time
	reset    bool
	reader   party
	writer   party
	faults   *Tally
}

// segment is what arrives at once.
type segment struct {
	at    time.Time
	bytes int
}

// init prepares h. Both halves share mu.
func (h *half) init(mu *sync.Mutex, twin *half, link Link, offset time.Duration, faults *Tally) {
	h.mu, h.twin, h.link, h.offset, h.faults = mu, twin, link, offset, faults
	h.random.Seed(link.Seed, uint64(offset))
}

// read implements Read of the reader's end.
func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		now := time.Now()
		h.arrive(now)
		switch {
		case h.closed:
			return 0, net.ErrClosed
		case h.reader.over(now):
			return 0, os.ErrDeadlineExceeded
		case h.reset:
			return 0, syscall.ECONNRESET
		case h.arrived > 0 || len(p) == 0:
			return h.take(p), nil
		case h.finArrived(now):
			return 0, io.EOF
		}
		h.reader.wait(h.mu, h.nextEvent())
	}
}

// arrive counts what has arrived by now. The caller holds h.mu.
func (h *half) arrive(now time.Time) {
	n := 0
	for n < len(h.segments) && !h.segments[n].at.After(now) {
		h.arrived += h.segments[n].bytes
		n++
	}
	if h.segments = h.segments[n:]; len(h.segments) == 0 {
		h.segments = h.slots[:0]
	}
}

// take reads what has arrived. The caller holds h.mu.
func (h *half) take(p []byte) int {
	n := h.sent.take(p, h.arrived)
	h.arrived -= n
	h.taken += int64(n)
	h.writer.wake()
	return n
}

// finArrived reports whether the writer's FIN has arrived. The caller holds h.mu.
func (h *half) finArrived(now time.Time) bool { return !h.finAt.IsZero() && !h.finAt.After(now) }

// nextEvent returns when the next segment arrives, or the end; the zero time if none
// does. The caller holds h.mu.
func (h *half) nextEvent() time.Time {
	if len(h.segments) > 0 {
		return h.segments[0].at
	}
	return h.finAt
}

// write implements Write of the writer's end.
func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		room := h.link.Window - h.sent.len() - h.void
		if len(p) <= smallWrite {
			room += reserve
		}
		switch {
		case h.ended:
			return n, net.ErrClosed
		case h.writer.over(time.Now()):
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
			h.writer.wait(h.mu, time.Time{})
		}
	}
}

// smallWrite is the longest write that may use a reserve beyond the window. net/http's server writes a 100 (Continue),
// and crypto/tls an alert while that server closes idle connections, with a mutex held for which other goroutines wait:
// such a write must not wait, since time does not pass in a bubble meanwhile. A socket's buffer is no more exact.
const (
	smallWrite = 32
	reserve    = 8 * smallWrite
)

// send puts p on its way, in segments. The caller holds h.mu.
func (h *half) send(p []byte) {
	for len(p) > 0 {
		m := min(len(p), h.cut())
		before := h.written
		if f := h.link.Fault; f.Kind != NoFault && before < f.At && before+int64(m) > f.At {
			m = int(f.At - before) // the fault happens between two segments
		}
		h.written += int64(m)
		if h.silent {
			h.void += m
		} else {
			h.deliver(p[:m])
		}
		if h.written == h.link.Fault.At {
			h.fail()
		}
		p = p[m:]
	}
}

// cut returns the most bytes that the next segment may hold. The first segments of a
// direction are as small as its link cuts them, and so are some later ones: a small segment
// costs as much as a large one, and many in a row find few faults. The caller holds h.mu.
func (h *half) cut() int {
	if h.link.Segment == 0 {
		return math.MaxInt
	}
	h.cuts++
	most := h.link.Segment
	if h.cuts > smallSegments && h.below(smallSegments/4) > 0 {
		most = max(most, 4<<10)
		if h.written > 32<<10 {
			most = 32 << 10
		}
	}
	return 1 + h.below(most)
}

// smallSegments is how many segments of a direction are small before most are large.
const smallSegments = 32

// below returns a random number below n. The caller holds h.mu.
func (h *half) below(n int) int { return int(h.random.Uint64() % uint64(n)) }

// deliver puts a segment on its way. The caller holds h.mu.
func (h *half) deliver(p []byte) {
	h.last = h.nextArrival()
	switch {
	case h.closed:
		h.at(h.last, h.meetClosed)
	case !h.finAt.IsZero(): // lost behind a FIN of the link
	default:
		if h.sent.len() == 0 {
			h.since = time.Now()
		}
		h.sent.push(p)
		if h.segments = append(h.segments, segment{h.last, len(p)}); cap(h.segments) > cap(h.slots) {
			h.slots = h.segments
		}
		h.reader.wakeAt(h.last)
	}
}

// nextArrival returns when a segment that is written now arrives. Each event of a history
// has an instant of its own, so that all its consequences have happened before the next
// event: the plan determines the order of events, not the scheduler. The caller holds h.mu.
func (h *half) nextArrival() time.Time {
	at := time.Now().Add(h.link.Delay)
	if h.link.Jitter > 0 {
		at = at.Add(time.Duration(h.below(int(h.link.Jitter))))
	}
	if !at.After(h.last) {
		at = h.last
	}
	return at.Truncate(instant).Add(instant + h.offset)
}

// instant is the distance of two arrivals of one half. Halves differ in their offsets.
const instant = 10 * time.Microsecond
