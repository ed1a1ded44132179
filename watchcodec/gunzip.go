package watchcodec

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// gunzipWriter inflates what is written to it. Its goroutine runs only while Write and Close wait
// for it: a caller that flushes after a Write knows that everything was written.
type gunzipWriter struct {
	body    inflated
	pending []byte
	in      chan []byte
	idle    chan error // nil: pending is used up; else the error that ended the stream
	started bool
	err     error // that ended the stream, io.EOF if it is whole
	refused error // the error of body.Write
	failed  error // the error of Write and Close after the end
	panic   any   // the value with which body panicked in the goroutine
}

// inflated receives the inflated bytes.
type inflated interface {
	io.WriteCloser
	// unreadable is called instead of the next Write, or of Close if the stream has ended, when the
	// stream can't be inflated. Its error is returned by this call and by those that follow.
	unreadable(err error, ended bool) error
}

func newGunzipWriter(body inflated) *gunzipWriter {
	return &gunzipWriter{body: body, in: make(chan []byte), idle: make(chan error)}
}

func (g *gunzipWriter) Write(p []byte) (int, error) {
	switch {
	case g.err != nil && g.failed != nil:
		return 0, g.failed
	case g.err != nil, len(p) == 0:
		return len(p), nil
	case !g.started:
		g.started, g.pending = true, p
		go g.run()
	default:
		g.in <- p
	}
	if g.wait(); g.err != nil {
		if g.fail(false); g.failed != nil {
			return 0, g.failed
		}
	}
	return len(p), nil
}

// fail sets the error that Write and Close return for a stream that has ended in an error.
func (g *gunzipWriter) fail(ended bool) {
	if g.failed = g.err; g.refused == nil {
		g.failed = g.body.unreadable(g.err, ended)
	}
}

// run inflates in its own goroutine. A panic there would end the program, so it is passed to the
// handler, which waits.
func (g *gunzipWriter) run() {
	err := errBodyPanicked
	defer func() {
		g.panic = recover()
		g.idle <- err
	}()
	err = g.inflate()
}

// wait waits until the goroutine needs more bytes or has ended.
func (g *gunzipWriter) wait() {
	if g.err = <-g.idle; g.err == errBodyPanicked {
		g.failed = g.err
		panic(g.panic)
	}
}

var errBodyPanicked = errors.New("watchcodec: the writer of the inflated response panicked")

// Close ends the stream, which must not be within a gzip member.
func (g *gunzipWriter) Close() error {
	ended := g.err != nil
	if g.stop(); !ended && g.err != nil && g.err != io.EOF {
		g.fail(true)
	}
	if g.failed != nil {
		return g.failed
	}
	return g.body.Close()
}

// stop stops the goroutine.
func (g *gunzipWriter) stop() {
	if g.started && g.err == nil {
		close(g.in)
		g.wait()
	}
}

// inflate returns io.EOF at the end of the stream. It ends each gzip member by itself: a reader
// that looked for the next member before it passed on the last bytes of this one would hold an
// event back until the next event.
func (g *gunzipWriter) inflate() error {
	src := bufio.NewReader(readerFunc(g.read)) // keeps the bytes after a member
	z, err := gzip.NewReader(src)
	for err == nil {
		z.Multistream(false)
		if _, err = io.Copy(writerFunc(g.pass), struct{ io.Reader }{z}); err == nil {
			err = z.Reset(src)
		}
	}
	return err
}

func (g *gunzipWriter) pass(p []byte) (n int, err error) {
	n, err = g.body.Write(p)
	g.refused = err
	return n, err
}

func (g *gunzipWriter) read(b []byte) (int, error) {
	if len(g.pending) == 0 {
		g.idle <- nil
		p, ok := <-g.in
		if !ok {
			return 0, io.EOF
		}
		g.pending = p
	}
	n := copy(b, g.pending)
	g.pending = g.pending[n:]
	return n, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
