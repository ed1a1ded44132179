package http1

import (
	"io"
	"net/http"
	"sync/atomic"
)

// Body is a response's body, which it reads from its connection.
type Body struct {
	Content
	conn  *Conn
	ended atomic.Bool // it was read to its end
}

// start makes b a body that is framed by f. trailer is called with the trailers of a chunked one.
func (b *Body) start(c *Conn, f framing, trailer func(http.Header)) {
	*b = Body{conn: c}
	b.Content.start(c.R, f, c.pool.o.MaxHeader, trailer)
	b.noteEnd()
}

func (b *Body) noteEnd() {
	if b.err == io.EOF {
		b.ended.Store(true)
	}
}

// Read reads the body. One that ends too early is an io.ErrUnexpectedEOF.
func (b *Body) Read(p []byte) (n int, err error) {
	n, err = b.Content.Read(p)
	if err == io.EOF {
		b.noteEnd()
	}
	return n, err
}

// Close makes a read fail that another goroutine has begun, if the body was not read to its end: the
// connection can't be used again then.
func (b *Body) Close() error {
	if !b.ended.Load() {
		b.conn.Interrupt()
	}
	return nil
}

// took notes bytes that were taken from the connection beside Read.
func (b *Body) took(n int64) {
	if b.left -= n; b.left == 0 {
		b.err = io.EOF
		b.noteEnd()
	}
}
