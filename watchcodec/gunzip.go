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
	body    io.WriteCloser
	pending []byte
	in      chan []byte
	idle    chan error // nil: what was written is used up; else how it ended
	started bool
	err     error // how it ended
	panic   any   // of the body, in the goroutine
}

func newGunzipWriter(body io.WriteCloser) *gunzipWriter {
	return &gunzipWriter{body: body, in: make(chan []byte), idle: make(chan error)}
}

func (g *gunzipWriter) Write(p []byte) (int, error) {
	switch {
	case g.err != nil:
		return 0, g.err
	case len(p) == 0:
		return 0, nil
	case !g.started:
		g.started, g.pending = true, p
		go g.run()
	default:
		g.in <- p
	}
	if g.wait(); g.err != nil {
		return 0, g.err
	}
	return len(p), nil
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
		panic(g.panic)
	}
}

var errBodyPanicked = errors.New("watchcodec: what takes the response panicked")

// Close ends the stream, which must not be in the middle of a member.
func (g *gunzipWriter) Close() error {
	if g.stop(); g.err != nil && g.err != io.EOF {
		return g.err
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
		if _, err = io.Copy(g.body, struct{ io.Reader }{z}); err == nil {
			err = z.Reset(src)
		}
	}
	return err
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

var errTooLarge = errors.New("watchcodec: answer over the limit")
