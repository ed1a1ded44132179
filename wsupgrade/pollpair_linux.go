package wsupgrade

import (
	"io"
	"sync"
	"syscall"
)

// pollPair is a tunnel on a loop.
type pollPair struct {
	t     *Tunnel
	ended func(*Tunnel)
	stop  func() // ends the tunnel's watch

	mu             sync.Mutex // held by the loop, and until the pair is its own
	client, target pollConn
	up, down       pollHalf
	over, broken   bool // broken: neither side's bytes can reach the other
}

// pollHalf is one direction.
type pollHalf struct {
	pair     *pollPair
	toTarget bool
	ready    bool // src may have something to read
	lost     bool // dst takes nothing more: what src sends is read and dropped
	over     bool // nothing more is read
	copies   bool // its sockets can't be spliced
	queued   bool // it waits for its next visit
}

func (h *pollHalf) direction() *direction {
	if h.toTarget {
		return &h.pair.t.up
	}
	return &h.pair.t.down
}

func (h *pollHalf) src() *pollConn {
	if h.toTarget {
		return &h.pair.client
	}
	return &h.pair.target
}

func (h *pollHalf) dst() *pollConn {
	if h.toTarget {
		return &h.pair.target
	}
	return &h.pair.client
}

// polled moves the tunnel to a loop, if both sides are plain sockets, and returns
// whether it did. ended, which may be nil, is called when the tunnel has.
//
// Tunnels with an Observer stay with the portable engine: its functions may take as
// long as they like, and a loop has other tunnels to serve.
func (t *Tunnel) polled(early earlyBytes, ended func(*Tunnel)) bool {
	if t.loops == nil || !plain(t.client) || !plain(t.target) {
		return false
	}
	l, err := t.loops.join()
	if err != nil {
		return false
	}
	p := &pollPair{t: t, ended: ended}
	p.up = pollHalf{pair: p, toTarget: true}
	p.down = pollHalf{pair: p}
	if p.copyConns() != nil || !p.begin(l, early) {
		l.leaveUnserved()
		return false
	}
	return true
}

func (p *pollPair) copyConns() error {
	if err := p.client.copy(p, p.t.client); err != nil {
		return err
	}
	if err := p.target.copy(p, p.t.target); err != nil {
		_ = p.client.Close()
		return err
	}
	return nil
}

// begin gives both sides to the loop and passes on what came before. It returns false, and has
// changed nothing, if the loop can't watch them: the client has its 101, and the portable
// engine can do it.
func (p *pollPair) begin(l *loop, early earlyBytes) bool {
	p.mu.Lock() // the loop waits with what it hears of them
	defer p.mu.Unlock()
	if l.add(&p.client) != nil || l.add(&p.target) != nil {
		p.over, p.up.over, p.down.over = true, true, true
		p.client.unwatch()
		p.closeConns(l)
		return false
	}
	client, target := p.t.client, p.t.target
	p.t.exchange(&p.client, &p.target)
	_ = client.Close() // the copies live on, and nothing uses these any more
	_ = target.Close()
	p.stop = p.t.watch()
	p.up.take(early.fromClient)
	p.down.take(early.fromTarget)
	return true
}

func (p *pollPair) closeConns(l *loop) {
	l.remove(&p.client)
	l.remove(&p.target)
	_ = p.client.Close()
	_ = p.target.Close()
}

// handle does what events of one side call for.
func (p *pollPair) handle(l *loop, c *pollConn, events uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, out := &p.up, &p.down
	if c == &p.target {
		in, out = out, in
	}
	if events&writable != 0 && !c.idle() && c.flush() {
		if c.broken() != nil {
			out.lose()
		}
		out.move(l)
	}
	if events&readable != 0 {
		in.ready = true
		in.move(l)
	}
	p.endIfOver(l)
}

// resume gives a direction that waited in the loop's queue its visit.
func (p *pollPair) resume(l *loop, h *pollHalf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.queued = false
	h.move(l)
	p.endIfOver(l)
}

// endIfOver ends the tunnel when both directions have, and nothing is pending, or when it
// is broken.
func (p *pollPair) endIfOver(l *loop) {
	if p.broken || p.up.over && p.down.over && p.client.idle() && p.target.idle() {
		p.end(l)
	}
}

func (p *pollPair) end(l *loop) {
	if p.over {
		return
	}
	p.over, p.up.over, p.down.over = true, true, true
	p.stop()
	p.closeConns(l)
	l.leave()
	p.t.finish()
	if p.ended != nil {
		go p.ended(p.t) // it is somebody else's, and may take its time
	}
}

// visit is how many bytes a direction may move before others have their turn. It bounds what
// a keystroke waits for; below it bulk would pay for the loop's rounds.
const visit = 256 << 10

// move reads and passes on until nothing is there, dst takes no more, or the visit is over.
// Then the direction waits in the loop's queue.
func (h *pollHalf) move(l *loop) {
	if h.queued {
		return
	}
	for budget := visit; h.ready && !h.over && h.dst().idle(); {
		if budget <= 0 {
			l.enqueue(h)
			return
		}
		h.pair.t.renew(h.src())
		n, err := h.moveSome(l, min(budget, pipeSize))
		budget -= n
		switch broken, ok := err.(brokenDst); {
		case err == nil:
		case err == syscall.EAGAIN:
			h.ready = false
		case ok && broken.error != nil:
			h.lose()
		default:
			h.end(err)
		}
	}
}

// moveSome moves what is there, and counts it. atMost is for what is spliced.
func (h *pollHalf) moveSome(l *loop, atMost int) (n int, err error) {
	if n, moved, err := h.splice(l, atMost); moved {
		return n, err
	}
	return h.read(l)
}

// read reads once and passes that on. A short read does not say that the socket is empty:
// the kernel ends one before urgent data of TCP, and behind descriptors that came over a
// Unix socket. Only EAGAIN does, and only then the next byte is an event.
func (h *pollHalf) read(l *loop) (n int, err error) {
	n, err = h.src().Read(l.buf)
	if err == nil {
		h.take(l.buf[:n])
	}
	return n, err
}

// take passes on what was read.
func (h *pollHalf) take(p []byte) {
	if len(p) == 0 || h.lost {
		return
	}
	switch d := h.direction(); d.step(p) {
	case stepAnswered:
		h.over = true
		d.answered()
	case stepFailed:
		h.lose()
	}
}

// lose goes on reading a src of which dst takes nothing more, see direction.drain.
func (h *pollHalf) lose() {
	if !h.lost {
		h.lost = true
		h.direction().fail()
	}
}

func (h *pollHalf) end(err error) {
	h.over = true
	switch {
	case h.lost:
	case err != io.EOF, h.src().isAborted():
		h.pair.broken = true
	default:
		h.direction().end(err)
	}
}
