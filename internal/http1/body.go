package http1

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
)

// Body is a response's body, which it reads from its connection.
type Body struct {
	conn    *Conn
	left    int64     // of a known length; untilClose
	chunks  io.Reader // nil: not chunked
	trailer func(http.Header)
	room    int // for trailers
	err     error
	ended   atomic.Bool // err is io.EOF
}

// start makes b a body that ends as f tells. trailer is called with the trailers of a chunked one.
func (b *Body) start(c *Conn, f framing, trailer func(http.Header)) {
	*b = Body{conn: c, left: f.length, trailer: trailer, room: c.pool.o.MaxHeader}
	switch {
	case f.noBody:
		b.left = 0
		b.end(io.EOF)
	case f.chunked:
		b.chunks = httputil.NewChunkedReader(c.R)
	case f.length == 0:
		b.end(io.EOF)
	}
}

func (b *Body) end(err error) {
	b.err = err
	if err == io.EOF {
		b.ended.Store(true)
	}
}

// whole reports whether the body was read to its end.
func (b *Body) whole() bool { return b.err == io.EOF }

// Read reads the body. One that ends too early is an io.ErrUnexpectedEOF.
func (b *Body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	switch {
	case b.chunks != nil:
		n, err = b.chunks.Read(p)
		if err == io.EOF {
			err = b.readTrailers()
		}
	case b.left == untilClose:
		n, err = b.conn.R.Read(p)
	default:
		n, err = b.conn.R.Read(p[:min(int64(len(p)), b.left)])
		switch b.left -= int64(n); {
		case b.left == 0:
			err = io.EOF // with the last bytes, so that the caller need not read once more
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		b.end(err)
	}
	return n, err
}

// readTrailers reads what stands behind the last chunk: io.EOF is a good end.
func (b *Body) readTrailers() error {
	line, err := b.conn.R.Peek(2)
	if err != nil {
		return unexpected(err)
	}
	if line[0] == '\r' && line[1] == '\n' {
		_, _ = b.conn.R.Discard(2)
		return io.EOF
	}
	var h header
	text, err := h.collectTrailers(b.conn, b.room)
	if err != nil {
		return unexpected(err)
	}
	if !bytes.HasSuffix(text, []byte("\r\n\r\n")) {
		return errTrailerEnd // bare line feeds end a body in one place for some, elsewhere for others
	}
	fields := http.Header{}
	h.fields = fields
	if err := h.parseFields(string(text)); err != nil {
		return err
	}
	b.trailer(fields)
	return io.EOF
}

var errTrailerEnd = errors.New("http1: the trailers' end is malformed")

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close makes a read fail that another goroutine has begun, if the body was not read to its end: the
// connection can't be used again then.
func (b *Body) Close() error {
	if !b.ended.Load() {
		b.conn.Interrupt()
	}
	return nil
}

// buffered reports whether all of the body was received already.
func (b *Body) buffered() bool {
	return b.err != nil || b.chunks == nil && b.left >= 0 && int64(b.conn.R.Buffered()) >= b.left
}

// took notes bytes that were taken from the connection beside Read.
func (b *Body) took(n int64) {
	if b.left -= n; b.left == 0 {
		b.end(io.EOF)
	}
}
