package wsupgrade

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/iolock"
	"github.com/culvert-go/culvert/internal/panics"
)

// direction is one half of a tunnel: it passes the bytes of src on to dst. An engine reads them,
// and reads further only when dst has accepted what was read, so a side that accepts no bytes holds
// up the one that sends.
type direction struct {
	t         *Tunnel
	toTarget  bool
	delivered atomic.Int64
	last      atomic.Int64  // nanoseconds from the tunnel's start to the last read
	lastUse   atomic.Int64  // the same of the last read that was not only Pongs
	lastPing  time.Duration // from the start to our last ping to src; the watcher's alone

	mu    iolock.Lock // held while something is written to dst
	codec codec       // nil: bytes, not frames
	shut  bool        // our Close frame was written: nothing of src is passed on
	torn  bool        // a write has failed: the codec does not know dst's place in the frames
	pings pings       // that were sent to src

	endDst atomic.Bool // dst has sent its Close frame, and is ended once it has ours
}

// reverse returns the other direction of the tunnel.
func (d *direction) reverse() *direction {
	if d.toTarget {
		return &d.t.down
	}
	return &d.t.up
}

// src and dst return the tunnel's connections. The caller holds mu, or is an engine whose tunnel's
// connections are not replaced any more.
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

// codec handles a WebSocket's frames in one direction.
type codec interface {
	// pass handles p, the next bytes of src, and writes to w what is passed on.
	pass(p []byte, w io.Writer) error
	// passToBoundary is pass up to the next boundary between two frames at dst. It returns how many
	// bytes of p it has handled.
	passToBoundary(p []byte, w io.Writer) (n int, err error)
	// onlyPongs reports whether p, the next bytes of src, are of Pongs only.
	onlyPongs(p []byte) bool
	// discard follows p, of which nothing is passed on.
	discard(p []byte)
	// atBoundary reports whether dst is at a boundary between two frames.
	atBoundary() bool
	// expectPong makes the codec drop the next Pong of src with the payload.
	expectPong(payload []byte)
	// closeReceived reports whether src has sent a Close frame, closeSent whether one of src was
	// passed on to dst.
	closeReceived() bool
	closeSent() bool
	// flushHeld writes what was held back of a src that has ended.
	flushHeld(w io.Writer) error
}

// step is what an engine does next after bytes were passed on.
type step int

const (
	stepContinue step = iota
	stepClosed        // src has sent its Close frame and dst has ours: nothing more of src is needed
	stepFailed        // dst accepts nothing more
)

// deliver passes on what was read.
func (d *direction) deliver(p []byte) step {
	d.last.Store(int64(time.Since(d.t.Start)))
	err := d.pass(p)
	switch {
	case d.closeOnError(err):
		return stepContinue // for the response to our Close frame
	case err != nil:
		return stepFailed
	case d.t.closing.Load() != nil:
		if d.closeComplete() {
			return stepClosed
		}
	}
	return stepContinue
}

func (d *direction) pass(p []byte) error {
	d.mu.Lock()
	defer d.unlock()
	if d.codec == nil || !d.codec.onlyPongs(p) {
		d.lastUse.Store(d.last.Load())
	}
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
	n, err := d.codec.passToBoundary(p, d)
	if err == nil {
		d.sendCloseAtBoundary()
		if rest := p[n:]; d.shut {
			d.codec.discard(rest)
		} else if len(rest) > 0 {
			err = d.codec.pass(rest, d)
		}
	}
	return err
}

// unlock releases d.mu, and sends the Close frame if the tunnel was closed meanwhile.
func (d *direction) unlock() {
	d.mu.Unlock()
	if d.t.closing.Load() != nil {
		d.tryClose()
	}
}

// Write writes to dst and counts the bytes. It is for codecs, which run with mu held.
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

// closeComplete reports whether src has sent its Close frame and dst has been sent ours.
func (d *direction) closeComplete() bool {
	d.mu.Lock()
	defer d.unlock()
	return d.shut && d.codec.closeReceived()
}

// closeOnError closes the tunnel, and returns true, if err is a *CloseError, since src has broken
// the protocol or sent what is refused, or the panic of a user's function.
func (d *direction) closeOnError(err error) bool {
	switch end := err.(type) {
	case *CloseError:
		d.t.Close(end.Code, end.Reason)
	case *panics.Error:
		d.t.panicked.CompareAndSwap(nil, end)
		d.t.Close(InternalError, "")
	default:
		return false
	}
	return true
}

// dstFailed is called when dst accepts nothing more. What src sent before is read for drainTimeout:
// unread bytes would turn the close of src's connection into a reset, which may overtake what is
// still being sent to src.
func (d *direction) dstFailed() { d.t.setFinalDeadline(time.Now().Add(drainTimeout)) }

// endSrc is called when src has sent its Close frame. It ends src, since a server closes first (RFC
// 6455 section 7.1.1), but not before the frame that is under way to it and our Close frame. src
// may have closed by itself while the end of that frame was awaited.
func (d *direction) endSrc() {
	back := d.reverse()
	back.endDst.Store(true)
	back.tryClose()
}

// passEnd passes the end of src on. After an error it aborts the tunnel: nothing that dst sends
// could be delivered.
func (d *direction) passEnd(err error) {
	if d.closeOnError(err) {
		return
	}
	if err != io.EOF {
		d.t.Abort()
		return
	}
	d.flush()
	d.t.closeWrite(d.dst())
}

func (d *direction) flush() {
	d.mu.Lock()
	defer d.unlock()
	if d.codec != nil && !d.shut {
		_ = d.codec.flushHeld(d)
	}
}
