package wsupgrade

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/iolock"
)

// direction is one half of a tunnel: what becomes of the bytes of src. An engine reads
// them, and reads on only when dst has taken what was read, so a side that does not
// take bytes holds up the one that sends.
type direction struct {
	t         *Tunnel
	toTarget  bool
	delivered atomic.Int64
	last      atomic.Int64  // nanoseconds from the tunnel's start to the last read
	asked     time.Duration // from the start to our last ping to src; for the watcher alone

	mu    iolock.Lock // held while something is written to dst
	codec codec       // nil: bytes, not frames
	shut  bool        // our Close frame was written: nothing of src goes on
	torn  bool        // a write has failed: where dst stands is not known to the codec
	pings pings       // that src was sent

	endDst atomic.Bool // dst has said its last, and is ended once it has our Close frame
}

// back is the other direction of the tunnel.
func (d *direction) back() *direction {
	if d.toTarget {
		return &d.t.down
	}
	return &d.t.up
}

// src and dst are the tunnel's connections. The caller holds mu, or is an engine whose
// tunnel has them for good.
func (d *direction) src() net.Conn {
	if d.toTarget {
		return d.t.client
	}
	return d.t.target
}

func (d *direction) dst() net.Conn {
	if d.toTarget {
		return d.t.target
	}
	return d.t.client
}

// codec is what a direction does with a WebSocket's frames.
type codec interface {
	// pass writes to w what becomes of p, the next bytes of src.
	pass(p []byte, w io.Writer) error
	// finish does so up to the next boundary between two frames at dst, and returns
	// how much of p that took.
	finish(p []byte, w io.Writer) (n int, err error)
	// discard follows p, of which nothing goes on.
	discard(p []byte)
	// here says whether dst stands at a boundary.
	here() bool
	// expect says that the next Pong of src with the payload is not to be passed on.
	expect(payload []byte)
	// closed says whether src has sent a Close frame, toldClose whether dst has been
	// passed one on.
	closed() bool
	toldClose() bool
	// end writes what was held back of a src that has ended.
	end(w io.Writer) error
}

// step is what comes of bytes that were passed on.
type step int

const (
	stepOn       step = iota
	stepAnswered      // src has answered our Close frame: nothing more of it is needed
	stepFailed        // dst takes nothing more
)

// step passes on what was read.
func (d *direction) step(p []byte) step {
	d.last.Store(int64(time.Since(d.t.Start)))
	err := d.pass(p)
	switch {
	case d.broken(err):
		return stepOn // for the answer to our Close frame
	case err != nil:
		return stepFailed
	case d.t.closing.Load() != nil:
		if d.said() {
			return stepAnswered
		}
	}
	return stepOn
}

func (d *direction) pass(p []byte) error {
	d.mu.Lock()
	defer d.unlock()
	switch {
	case d.shut:
		d.codec.discard(p)
		return nil
	case d.codec == nil:
		_, err := d.Write(p)
		return err
	case d.t.closing.Load() == nil:
		return d.codec.pass(p, d)
	}
	n, err := d.codec.finish(p, d)
	if err == nil {
		d.shutHere()
		if rest := p[n:]; d.shut {
			d.codec.discard(rest)
		} else if len(rest) > 0 {
			err = d.codec.pass(rest, d)
		}
	}
	return err
}

// unlock lets d.mu go, and does what somebody may have wanted to do meanwhile.
func (d *direction) unlock() {
	d.mu.Unlock()
	if d.t.closing.Load() != nil {
		d.tryShut()
	}
}

// Write writes to dst and counts. It is for codecs, which run with mu held.
func (d *direction) Write(p []byte) (int, error) {
	n, err := d.write(p)
	d.torn = d.torn || err != nil
	d.delivered.Add(int64(n))
	return n, err
}

func (d *direction) write(p []byte) (n int, err error) {
	defer d.t.catch(&err)
	return d.dst().Write(p)
}

// said says whether src has said its last, and dst has our Close frame.
func (d *direction) said() bool {
	d.mu.Lock()
	defer d.unlock()
	return d.shut && d.codec.closed()
}

// broken closes the tunnel if src has broken the protocol, said what is refused, or met a bug of a user's.
func (d *direction) broken(err error) bool {
	switch end := err.(type) {
	case *CloseError:
		d.t.Close(end.Code, end.Reason)
	case *panicError:
		d.t.panicked.CompareAndSwap(nil, end)
		d.t.Close(InternalError, "")
	default:
		return false
	}
	return true
}

// fail is called when dst takes nothing more. What src sent before has a last while to
// be read: bytes left unread would turn src's close into a reset, which may overtake
// what src is still to be sent.
func (d *direction) fail() { d.t.fix(time.Now().Add(lastWhile)) }

// answered is called when src has said its last: it is ended, since a server closes first
// (RFC 6455 section 7.1.1), but not before the frame that is under way to it and our Close
// frame. src may have closed of itself, while we waited for the end of that frame.
func (d *direction) answered() {
	back := d.back()
	back.endDst.Store(true)
	back.tryShut()
}

// end passes the end of src on. Only a clean one can be: after an error nothing
// that dst says can reach anyone.
func (d *direction) end(err error) {
	if d.broken(err) {
		return
	}
	if err != io.EOF {
		d.t.Abort()
		return
	}
	d.flush()
	d.t.end(d.dst())
}

func (d *direction) flush() {
	d.mu.Lock()
	defer d.unlock()
	if d.codec != nil && !d.shut {
		_ = d.codec.end(d)
	}
}
