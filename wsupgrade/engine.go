package wsupgrade

import (
	"io"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// run moves bytes until both directions have ended, one has failed, or the tunnel was closed: on a
// loop where the system has them, else on this goroutine and one more.
func (t *Tunnel) run(early earlyBytes) {
	if t.moveToLoop(early, nil) {
		<-t.Done()
		return
	}
	t.copy(early)
}

// start is run that does not wait. ended, if not nil, is called when the tunnel has ended.
func (t *Tunnel) start(early earlyBytes, ended func(*Tunnel)) {
	if t.moveToLoop(early, ended) {
		return
	}
	go func() {
		defer func() {
			t.logPanic()
			if ended != nil {
				ended(t)
			}
		}()
		t.copy(early)
	}()
}

// copy is the portable engine: a goroutine for each direction.
func (t *Tunnel) copy(early earlyBytes) {
	stop := t.watchLimits()
	up := make(chan struct{})
	go func() {
		defer close(up)
		t.up.copyOrAbort(early.fromClient)
	}()
	defer func() { // also where an Observer ends this goroutine
		<-up
		stop()
		_ = t.contain(t.client.Close)
		_ = t.contain(t.target.Close)
		t.finish()
	}()
	t.down.copyOrAbort(early.fromTarget)
}

// copyOrAbort is copy, and aborts the tunnel if an Observer ends the goroutine (runtime.Goexit), as a test's FailNow does.
func (d *direction) copyOrAbort(early []byte) {
	returned := false
	defer func() {
		if !returned {
			d.t.Abort()
		}
	}()
	d.copy(early)
	returned = true
}

// copy moves bytes until src ends.
func (d *direction) copy(early []byte) {
	if len(early) > 0 && !d.handleStep(d.deliver(early)) {
		return
	}
	src := d.src()
	for r := newReader(src); ; {
		d.t.renewReadDeadline(src)
		p, err := d.read(r)
		more := len(p) == 0 || d.handleStep(d.deliver(p))
		r.release()
		switch {
		case !more:
			return
		case err != nil:
			d.passEnd(err)
			return
		}
	}
}

// handleStep does what s calls for, and reports whether src is to be read further.
func (d *direction) handleStep(s step) bool {
	switch s {
	case stepClosed:
		d.endSrc()
		return false
	case stepFailed:
		d.dstFailed()
		d.discardSrc()
		return false
	}
	return true
}

func (d *direction) read(r reader) (p []byte, err error) {
	defer d.t.catch(&err)
	return r.read()
}

// discardSrc reads and drops what src still sends.
func (d *direction) discardSrc() {
	var err error
	defer d.t.catch(&err)
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{d.src()}, buf)
}
