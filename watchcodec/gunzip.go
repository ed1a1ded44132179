package watchcodec

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/culvert-go/culvert/internal/pushdecode"
)

// gunzipWriter inflates what is written to it, on the goroutine of its caller: a caller that flushes
// after a Write knows that everything was written.
type gunzipWriter struct {
	body    inflated
	stream  *pushdecode.Writer
	refused bool  // body.Write has failed or panicked
	ended   bool  // the stream has ended in an error
	failed  error // the error of Write and Close after that
}

// inflated receives the inflated bytes.
type inflated interface {
	io.WriteCloser
	// unreadable is called instead of the next Write, or of Close if the stream has ended, when the
	// stream can't be inflated. Its error is returned by this call and by those that follow.
	unreadable(err error, ended bool) error
}

func newGunzipWriter(body inflated) *gunzipWriter {
	g := &gunzipWriter{body: body}
	g.stream = pushdecode.NewWriter(g.inflate)
	return g
}

func (g *gunzipWriter) Write(p []byte) (int, error) {
	if _, err := g.stream.Write(p); err != nil {
		if err = g.fail(err, false); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Discards implements response.Discards.
func (g *gunzipWriter) Discards() bool {
	d, ok := g.body.(interface{ Discards() bool })
	return ok && d.Discards()
}

// Close ends the stream, which must not be within a gzip member.
func (g *gunzipWriter) Close() error {
	if err := g.stream.Close(); err != nil {
		if err = g.fail(err, true); err != nil {
			return err
		}
	}
	return g.body.Close()
}

// fail returns the error of Write and Close for a stream that has ended in err.
func (g *gunzipWriter) fail(err error, closing bool) error {
	if !g.ended {
		g.ended, g.failed = true, err
		if !g.refused {
			g.failed = g.body.unreadable(err, closing)
		}
	}
	return g.failed
}

// inflate ends each gzip member by itself: a reader that looked for the next member before it passed
// on the last bytes of this one would hold an event back until the next event.
func (g *gunzipWriter) inflate(compressed io.Reader) error {
	src := bufio.NewReader(compressed) // keeps the bytes after a member
	z, err := gzip.NewReader(src)
	for err == nil {
		z.Multistream(false)
		if _, err = io.Copy(writerFunc(g.pass), struct{ io.Reader }{z}); err == nil {
			err = z.Reset(src)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func (g *gunzipWriter) pass(p []byte) (n int, err error) {
	g.refused = true
	n, err = g.body.Write(p)
	g.refused = err != nil
	return n, err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
