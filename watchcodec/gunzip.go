package watchcodec

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// gunzipWriter inflates what is written to it. Its goroutine runs only while Write and
// Close wait for it, so that whoever flushes behind a Write finds all of it written.
type gunzipWriter struct {
	body    inflated
	pending []byte
	in      chan []byte
	idle    chan error // nil: what was written is used up; else how it ended
	started bool
	err     error // how it ended
	refused error // of the body's Write
	failed  error // what Write and Close return behind the end
	panic   any   // of the body, in the goroutine
}

// inflated takes what was inflated.
type inflated interface {
	io.WriteCloser
	// unreadable is called in place of the next Write, or of Close where the stream has ended, if it can't be inflated. The
	// error is that of this call and of those that follow.
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

// fail settles what comes of a stream that has ended in an error.
func (g *gunzipWriter) fail(ended bool) {
	if g.failed = g.err; g.refused == nil {
		g.failed = g.body.unreadable(g.err, ended)
	}
}

// run inflates in a goroutine of its own. A panic there would end the program: it is that of the handler, which waits.
func (g *gunzipWriter) run() {
	err := errBodyPanicked
	defer func() {
		g.panic = recover()
		g.idle <- err
	}()
	err = g.inflate()
}

// wait waits until the goroutine needs more, or has ended.
func (g *gunzipWriter) wait() {
	if g.err = <-g.idle; g.err == errBodyPanicked {
		g.failed = g.err
		panic(g.panic)
	}
}

var errBodyPanicked = errors.New("watchcodec: what takes the response panicked")

// Close ends the stream, which must not be in the middle of a member.
func (g *gunzipWriter) Close() error {
	over := g.err != nil
	if g.stop(); !over && g.err != nil && g.err != io.EOF {
		g.fail(true)
	}
	if g.failed != nil {
		return g.failed
	}
	return g.body.Close()
}

// stop ends the goroutine.
func (g *gunzipWriter) stop() {
	if g.started && g.err == nil {
		close(g.in)
		g.wait()
	}
}

// inflate returns io.EOF at the end of the stream. Each member is ended by itself: to look
// for the next one before its last bytes are passed on would hold up an event until there
// is another.
func (g *gunzipWriter) inflate() error {
	src := bufio.NewReader(readerFunc(g.read)) // what is behind a member stays here
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

var errTooLarge = errors.New("watchcodec: answer over the limit")
