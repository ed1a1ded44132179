package wsupgrade

import (
	"io"
	"sync"
	"syscall"

	"github.com/culvert-go/culvert/internal/netloop"
)

// pollPair is a tunnel on a loop.
type pollPair struct {
	t     *Tunnel
	ended func(*Tunnel) // may be nil
	stop  func()        // ends watchLimits

	mu               sync.Mutex // held by the loop, and by attach
	client, target   pollConn
	up, down         pollHalf
	finished, broken bool // broken: neither side's bytes can be delivered
}

// pollHalf is one direction.
type pollHalf struct {
	pair     *pollPair
	toTarget bool
	ready    bool // src may be readable
	dstLost  bool // dst accepts nothing more: what src sends is read and dropped
	finished bool // nothing more is read
	noSplice bool // its sockets can't be spliced
	queued   bool // it is in the loop's queue
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

// moveToLoop moves the tunnel to a loop if both sides are plain sockets. It returns false if the tunnel
// is not on a loop. ended, if not nil, is called when the tunnel has ended.
//
// Tunnels with an Observer run on the portable engine: its functions may take long, and a loop has
// other tunnels to serve.
func (t *Tunnel) moveToLoop(early earlyBytes, ended func(*Tunnel)) bool {
	if t.loops == nil || !isPlainSocket(t.client) || !isPlainSocket(t.target) {
		return false
	}
	p := &pollPair{t: t, ended: ended}
	p.up = pollHalf{pair: p, toTarget: true}
	p.down = pollHalf{pair: p}
	return p.copyConns() == nil && p.attach(t.loops.Next(), early)
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

// attach gives both sides to the loop and passes on the early bytes. If the loop can't watch them,
// it returns false and has changed nothing: the client has its 101, and the portable engine can
// move the bytes.
func (p *pollPair) attach(l *netloop.Loop, early earlyBytes) bool {
	p.mu.Lock() // events wait until both are attached
	defer p.mu.Unlock()
	if p.client.watch(l) != nil || p.target.watch(l) != nil {
		p.finished, p.up.finished, p.down.finished = true, true, true
		p.closeConns()
		return false
	}
	client, target := p.t.client, p.t.target
	p.t.replaceConns(&p.client, &p.target)
	_ = client.Close() // the copies are kept, and nothing uses these any more
	_ = target.Close()
	p.stop = p.t.watchLimits()
	p.up.forward(early.fromClient)
	p.down.forward(early.fromTarget)
	return true
}

func (p *pollPair) closeConns() {
	_ = p.client.Close()
	_ = p.target.Close()
}

// handle handles events of one side.
func (p *pollPair) handle(l *loop, c *pollConn, events uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, out := &p.up, &p.down
	if c == &p.target {
		in, out = out, in
	}
	if events&writable != 0 && !c.idle() && c.flush() {
		if c.writeError() != nil {
			out.loseDst()
		}
		out.move(l)
	}
	if events&readable != 0 {
		in.ready = true
		in.move(l)
	}
	p.finishIfDone()
}

// Resume gives a direction from the loop's queue its visit.
func (h *pollHalf) Resume(l *netloop.Loop) {
	p := h.pair
	p.mu.Lock()
	defer p.mu.Unlock()
	h.queued = false
	h.move(l.State().(*loop))
	p.finishIfDone()
}

// finishIfDone ends the tunnel if both directions have ended and nothing is pending, or if it is
// broken.
func (p *pollPair) finishIfDone() {
	if p.broken || p.up.finished && p.down.finished && p.client.idle() && p.target.idle() {
		p.finish()
	}
}

func (p *pollPair) finish() {
	if p.finished {
		return
	}
	p.finished, p.up.finished, p.down.finished = true, true, true
	p.stop()
	p.closeConns()
	p.t.finish()
	if p.ended != nil {
		go p.ended(p.t) // the caller's function, which may take long
	}
}

// visit is how many bytes a direction may move before others have their turn. It bounds how long a
// keystroke waits; with less, bulk transfers would pay for the loop's rounds.
const visit = 256 << 10

// move reads and passes on until src is empty or dst accepts no more, or until the visit is over,
// when it puts the direction into the loop's queue.
func (h *pollHalf) move(l *loop) {
	if h.queued {
		return
	}
	for budget := visit; h.ready && !h.finished && h.dst().idle(); {
		if budget <= 0 {
			h.queued = true
			l.Enqueue(h)
			return
		}
		h.pair.t.renewReadDeadline(h.src())
		n, err := h.moveSome(l, min(budget, pipeSize))
		budget -= n
		switch broken, ok := err.(brokenDst); {
		case err == nil:
		case err == syscall.EAGAIN:
			h.ready = false
		case ok && broken.error != nil:
			h.loseDst()
		default:
			h.srcEnded(err)
		}
	}
}

// moveSome moves the available bytes, and returns their number. atMost bounds what is spliced.
func (h *pollHalf) moveSome(l *loop, atMost int) (n int, err error) {
	if n, moved, err := h.splice(l, atMost); moved {
		return n, err
	}
	return h.read(l)
}

// read reads once and passes that on. A short read does not mean that the socket is empty: the
// kernel ends one before urgent data of TCP, and after descriptors that were sent over a Unix
// socket. Only EAGAIN does, and only after it the next byte is an event.
func (h *pollHalf) read(l *loop) (n int, err error) {
	n, err = h.src().Read(l.buf)
	if err == nil {
		h.forward(l.buf[:n])
	}
	return n, err
}

// forward passes on what was read.
func (h *pollHalf) forward(p []byte) {
	if len(p) == 0 || h.dstLost {
		return
	}
	switch d := h.direction(); d.deliver(p) {
	case stepClosed:
		h.finished = true
		d.endSrc()
	case stepFailed:
		h.loseDst()
	}
}

// loseDst is called when dst accepts nothing more. src is still read, see direction.dstFailed.
func (h *pollHalf) loseDst() {
	if !h.dstLost {
		h.dstLost = true
		h.direction().dstFailed()
	}
}

func (h *pollHalf) srcEnded(err error) {
	h.finished = true
	switch {
	case h.dstLost:
	case err != io.EOF, h.src().isAborted():
		h.pair.broken = true
	default:
		h.direction().passEnd(err)
	}
}
