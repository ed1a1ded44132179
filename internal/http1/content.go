package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// untilClose is the length of a body that ends with its connection.
const untilClose = -1

// Content reads the body of a message, a request's or a response's, up to its end. Reads must not be concurrent.
type Content struct {
	r       *bufio.Reader
	left    int64 // of a known length; untilClose
	chunked bool
	chunks  chunkReader
	trailer func(http.Header)
	room    int     // for trailers
	tail    *header // of the trailers, when their reading has begun
	err     error
}

// StartRequest makes b the body of a request that f frames. trailer is called with the trailers of a chunked one, which
// may take up room bytes. A read that fails with a timeout may be called again.
func (b *Content) StartRequest(r *bufio.Reader, f Framing, room int, trailer func(http.Header)) {
	b.start(r, framing{chunked: f.Chunked, length: f.Length}, room, trailer)
	b.chunks.strict = true
}

func (b *Content) start(r *bufio.Reader, f framing, room int, trailer func(http.Header)) {
	*b = Content{r: r, left: f.length, chunked: f.chunked && !f.noBody, trailer: trailer, room: room}
	switch {
	case f.noBody:
		b.left, b.err = 0, io.EOF
	case !f.chunked && f.length == 0:
		b.err = io.EOF
	}
}

// Whole reports whether the body was read to its end.
func (b *Content) Whole() bool { return b.err == io.EOF }

// Broken reports whether the body's end can't be found any more.
func (b *Content) Broken() bool { return b.err != nil && b.err != io.EOF }

// Left returns how many bytes remain; -1 if it is not known.
func (b *Content) Left() int64 {
	if b.chunked && b.err == nil {
		return -1
	}
	return b.left
}

// Read reads the body. One that ends too early is an io.ErrUnexpectedEOF.
func (b *Content) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	switch {
	case b.chunked:
		n, err = b.chunks.read(b.r, p)
		if err == io.EOF {
			err = b.readTrailers()
		}
	case b.left == untilClose:
		n, err = b.r.Read(p)
	default:
		n, err = b.r.Read(p[:min(int64(len(p)), b.left)])
		switch b.left -= int64(n); {
		case b.left == 0:
			err = io.EOF // with the last bytes, so that the caller need not read once more
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil && b.err == nil && !(b.chunks.strict && timedOut(err)) {
		b.err = err
	}
	return n, err
}

// Ready reports whether a read returns at once.
func (b *Content) Ready() bool {
	switch {
	case b.err != nil:
		return true
	case b.tail != nil: // a part of the trailers was read
		return false
	case b.chunked:
		return b.chunks.ready(b.r)
	}
	return b.r.Buffered() > 0
}

// Received reports whether all of the body was received, up to its trailers.
func (b *Content) Received() bool {
	if b.buffered() || !b.chunked {
		return b.buffered()
	}
	received, _ := b.r.Peek(b.r.Buffered())
	ahead := Content{r: bufio.NewReader(bytes.NewReader(received)), chunked: true, chunks: b.chunks, room: b.room, trailer: func(http.Header) {}}
	_, err := io.Copy(io.Discard, struct{ io.Reader }{&ahead})
	return err == nil
}

// readTrailers reads what stands behind the last chunk: io.EOF is a good end.
func (b *Content) readTrailers() error {
	if b.tail == nil {
		line, err := b.r.Peek(2)
		if err != nil {
			return unexpected(err)
		}
		if line[0] == '\r' && line[1] == '\n' {
			_, _ = b.r.Discard(2)
			return io.EOF
		}
		b.tail = &header{strict: b.chunks.strict, fields: http.Header{}, lines: []byte{'\n'}}
	}
	h := b.tail
	text, err := h.collectTrailers(b.r, b.room)
	if err != nil {
		return unexpected(err)
	}
	if !bytes.HasSuffix(text, []byte("\r\n\r\n")) {
		return errTrailerEnd // bare line feeds end a body in one place for some, elsewhere for others
	}
	if err := h.parseFields(string(text)); err != nil {
		return err
	}
	if name := framingTrailer(h.fields); h.strict && name != "" {
		return fmt.Errorf("http1: bad trailer %q", name)
	}
	b.trailer(h.fields)
	return io.EOF
}

var errTrailerEnd = errors.New("http1: the trailers' end is malformed")

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// buffered reports whether all of the body was received already.
func (b *Content) buffered() bool {
	return b.err != nil || !b.chunked && b.left >= 0 && int64(b.r.Buffered()) >= b.left
}
