package wsupgrade

import (
	"io"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// run moves bytes until both directions have ended, one has failed, or the tunnel was
// closed. Where the system has a loop for that, it does; else this goroutine and one
// more do.
func (t *Tunnel) run(early earlyBytes) {
	if t.polled(early, nil) {
		<-t.Done()
		return
	}
	t.copy(early)
}

// start is run that does not wait. ended is called when the tunnel has ended.
func (t *Tunnel) start(early earlyBytes, ended func(*Tunnel)) {
	if t.polled(early, ended) {
		return
	}
	go func() {
		t.copy(early)
		t.logPanic()
		if ended != nil {
			ended(t)
		}
	}()
}

// copy is the portable engine: a goroutine for each direction.
func (t *Tunnel) copy(early earlyBytes) {
	stop := t.watch()
	up := make(chan struct{})
	go func() {
		defer close(up)
		t.up.copy(early.fromClient)
	}()
	t.down.copy(early.fromTarget)
	<-up
	stop()
	_ = t.contain(t.client.Close)
	_ = t.contain(t.target.Close)
	t.finish()
}

// copy moves bytes until src ends.
func (d *direction) copy(early []byte) {
	if len(early) > 0 && !d.goOn(d.step(early)) {
		return
	}
	src := d.src()
	for r := newReader(src); ; {
		d.t.renew(src)
		p, err := d.read(r)
		on := len(p) == 0 || d.goOn(d.step(p))
		r.release()
		switch {
		case !on:
			return
		case err != nil:
			d.end(err)
			return
		}
	}
}

// goOn says whether src is to be read further.
func (d *direction) goOn(s step) bool {
	switch s {
	case stepAnswered:
		d.answered()
		return false
	case stepFailed:
		d.fail()
		d.drain()
		return false
	}
	return true
}

func (d *direction) read(r reader) (p []byte, err error) {
	defer d.t.catch(&err)
	return r.read()
}

// drain reads what src sends still, and drops it.
func (d *direction) drain() {
	var err error
	defer d.t.catch(&err)
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{d.src()}, buf)
}
