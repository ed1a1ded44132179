package relay

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/response"
)

// copyBody copies the body to its end and returns how many bytes the writer accepted. It
// flushes whenever the target pauses: the header of a stream at once, then after each read
// that is not the last.
func (o Options) copyBody(side *clientside.Handle, r *http.Request, resp *http.Response) (int64, error) {
	w, left := side.Writer(), resp.ContentLength
	stream := left < 0
	switch {
	case r.Method == http.MethodHead, resp.Body == http.NoBody:
		o.leave(side, r)
		return 0, nil
	case response.Discards(w):
		o.abandon(w, resp)
		o.leave(side, r)
		return 0, nil
	case resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		return 0, o.awaitTrailers(side, r, resp)
	case left == 0 && resp.ProtoMajor == 1:
		o.leave(side, r)
		return 0, nil
	case left == 0:
		// Over HTTP/2 a transport of the program's own may leave an unknown length out, and content may follow.
		// If the target has ended its stream with the header, as gRPC does for a failed call, the client's must
		// end there, too: nothing is flushed.
		left = -1
	}
	if body := o.movable(w, r, resp); body != nil {
		return o.move(side, r, body)
	}
	out := o.newOutput(side, r)
	defer out.close()
	if stream {
		if err := out.flush(); err != nil {
			return 0, clientGone(err)
		}
	}
	src, stop := o.source(resp)
	defer stop()
	buf := bufpool.GetFor(resp.ContentLength)
	defer bufpool.Put(buf)
	for sent := int64(0); ; {
		n, readErr := src.Read(buf)
		if n > 0 {
			out.to().offer()
			if err := out.write(buf[:n]); err != nil {
				return sent, clientGone(err)
			}
			sent += int64(n)
			left -= int64(n)
			if out.discards() { // since this piece
				o.Drain = o.Drain && o.Buffer == nil // which reads the body
				o.abandon(w, resp)
				readErr = io.EOF
			}
		}
		switch {
		case readErr == io.EOF:
			if err := out.finish(); err != nil {
				return sent, clientGone(err)
			}
			return sent, nil
		case readErr != nil:
			_ = out.flush() // the abort that follows would discard what was received
			return sent, out.to().readFailed(r.Context(), readErr)
		case n > 0 && left != 0:
			if err := out.pause(n < len(buf)); err != nil {
				return sent, clientGone(err)
			}
			out.to().accepted()
		}
	}
}

// leave bounds the time that the client may take for a response without content: the server writes its header after the
// handler has returned.
func (o Options) leave(side *clientside.Handle, r *http.Request) {
	var writes deadline.Deadline
	writes.StartWrites(side, r, o.WriteTimeout)
	writes.PassOn()
	writes.Leave()
}

// awaitTrailers waits for the trailers that an HTTP/2 target has announced for a response without content. If it has
// announced none, the client's response ends with its header at once. A failure of the body is ignored: net/http expects a
// body of the Content-Length of a 304, though that is the length of the corresponding 200 (RFC 9110 section 8.6).
func (o Options) awaitTrailers(side *clientside.Handle, r *http.Request, resp *http.Response) error {
	if len(resp.Trailer) == 0 {
		o.leave(side, r)
		return nil
	}
	out := o.newOutput(side, r)
	defer out.close()
	if err := out.flush(); err != nil {
		return clientGone(err)
	}
	_, _ = resp.Body.Read(make([]byte, 1)) // the trailers are received with its end
	if err := out.finish(); err != nil {
		return clientGone(err)
	}
	return nil
}

// Mover is a body that the kernel can move to a socket; see http1.Body.
type Mover interface {
	// Movable reports whether Move can move the body.
	Movable() bool
	// Move moves the body to w, as http1.Body does.
	Move(w io.ReaderFrom, before func(), after func(n int64) error) (n int64, read, write error)
}

// movable returns the body if the kernel may move it: from one plain socket to another, at
// the client's pace, with no filter or buffer between. Otherwise it returns nil.
func (o Options) movable(w http.ResponseWriter, r *http.Request, resp *http.Response) Mover {
	body, ok := resp.Body.(Mover)
	if !ok || o.Buffer != nil || o.Flush != 0 || r.TLS != nil || r.ProtoMajor != 1 || !body.Movable() || !response.Plain(w) {
		return nil
	}
	return body
}

// heldBack is the size from which a moved piece need not be flushed: net/http's writer buffers the header and up to 512
// bytes that follow it, and writes more at once.
const heldBack = 4 << 10

func (o Options) move(side *clientside.Handle, r *http.Request, body Mover) (int64, error) {
	var c client
	c.start(side, r, o.WriteTimeout)
	defer c.writes.Stop()
	offer := func() {
		c.offer()
		c.writes.Begin()
	}
	accepted := func(piece int64) (err error) {
		if piece < heldBack {
			err = c.flush()
		}
		c.accepted()
		return err
	}
	n, read, write := body.Move(side.Writer().(io.ReaderFrom), offer, accepted)
	switch {
	case write != nil:
		return n, clientGone(write)
	case read != nil:
		return n, c.readFailed(r.Context(), read)
	}
	c.writes.Leave()
	return n, nil
}

// source returns the body, read through the buffer if there is one.
func (o Options) source(resp *http.Response) (src io.Reader, stop func()) {
	if o.Buffer == nil {
		return resp.Body, func() {}
	}
	b := startBuffer(resp.Body, *o.Buffer)
	return b.reader(), b.stop
}

// newOutput returns the client's side of a body, with a flush interval if o.Flush is positive.
func (o Options) newOutput(side *clientside.Handle, r *http.Request) (out output) {
	out.each = o.Flush < 0
	if o.Flush > 0 {
		out.late = newLateFlush(o.Flush)
	}
	out.to().start(side, r, o.WriteTimeout)
	return out
}

// output is the client's side of a body.
type output struct {
	client client
	each   bool       // flush after each write
	late   *lateFlush // has a client of its own; nil: flush when the target pauses
}

func (o *output) to() *client {
	if o.late != nil {
		return &o.late.client
	}
	return &o.client
}

func (o *output) write(p []byte) error {
	if o.late != nil {
		return o.late.write(p)
	}
	return o.client.write(p)
}

func (o *output) flush() error {
	if o.late != nil {
		return o.late.flush()
	}
	return o.client.flush()
}

// discards reports whether the writer discards the rest of the body.
func (o *output) discards() bool {
	if o.late != nil {
		return o.late.discards()
	}
	return response.Discards(o.client.side.Writer())
}

// pause is called after each write. idle means that no more of the body has been received.
func (o *output) pause(idle bool) error {
	if o.late != nil || !idle && !o.each {
		return nil
	}
	return o.flush()
}

func (o *output) close() {
	if o.late != nil {
		_ = o.late.stop()
	}
	o.to().writes.Stop()
}

// finish is called after the whole body was written. It returns the error of a late flush that no write has returned.
func (o *output) finish() error {
	if o.late != nil {
		if err := o.late.stop(); err != nil {
			return err
		}
	}
	o.to().writes.Leave()
	return nil
}
