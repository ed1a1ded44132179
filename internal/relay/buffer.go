package relay

import (
	"bytes"
	"errors"
	"io"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/spool"
)

// errHandOver ends a spool that is full: the rest is read from the body itself.
var errHandOver = errors.New("full")

// buffer reads a body ahead of its client. Once it is full it reads no more, and the rest
// of the body is read at the client's pace.
type buffer struct {
	body  io.ReadCloser
	spool *spool.Spool
	rest  []byte // read from body, but the spool was full
	done  chan struct{}

	panicked any // the value of a panic in body; set before the end of spool
}

func startBuffer(body io.ReadCloser, o spool.Options) *buffer {
	b := &buffer{body: body, spool: spool.New(o), done: make(chan struct{})}
	go b.fill()
	return b
}

func (b *buffer) fill() {
	defer close(b.done)
	defer func() { // a transport's body may panic, which would end the program here
		if b.panicked = recover(); b.panicked != nil {
			b.spool.End(errPanicked)
		}
	}()
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for {
		n, err := b.body.Read(buf)
		if n > 0 {
			if _, full := b.spool.Write(buf[:n]); full != nil {
				// Also if the disk has failed: then the body is relayed without a buffer.
				b.rest = bytes.Clone(buf[:n])
				if err == nil {
					err = errHandOver
				} else {
					err = &afterRest{err}
				}
			}
		}
		if err != nil {
			b.spool.End(err)
			return
		}
	}
}

var errPanicked = errors.New("the response's body panicked")

// afterRest is the end of a body that was read together with buffer.rest.
type afterRest struct{ error }

func (b *buffer) reader() io.Reader { return &bufferReader{b: b, src: b.spool.Reader()} }

// stop closes the body and waits until it is no longer read ahead.
func (b *buffer) stop() {
	b.body.Close()
	<-b.done
	b.spool.Close()
}

type bufferReader struct {
	b     *buffer
	src   io.Reader
	after error // returned at the end of src in place of io.EOF, if not nil
}

func (r *bufferReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	var late *afterRest
	switch {
	case err == errPanicked:
		panic(r.b.panicked)
	case err == errHandOver:
		r.src = io.MultiReader(bytes.NewReader(r.b.rest), r.b.body)
		return r.src.Read(p)
	case errors.As(err, &late):
		r.src = bytes.NewReader(r.b.rest)
		r.after = late.error
		return r.src.Read(p)
	case err == io.EOF && r.after != nil:
		err = r.after
	}
	return n, err
}
