package relay

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/response"
)

// copyBody copies until the end of the body and returns the bytes that were
// taken. It flushes whenever the target paused: a stream's head at once, then
// after every read that left more to come.
func (o Options) copyBody(w http.ResponseWriter, r *http.Request, resp *http.Response) (int64, error) {
	left := resp.ContentLength
	switch {
	case r.Method == http.MethodHead, resp.Body == http.NoBody:
		return 0, nil
	case left == 0 && resp.ProtoMajor == 1:
		return 0, nil
	case left == 0: // an HTTP/2 target may send trailers behind a body of no bytes, and some time later
		left = -1
	}
	if body := o.movable(w, r, resp); body != nil {
		return o.move(w, r, body)
	}
	out := o.newOutput(w, r)
	defer out.close()
	if left < 0 {
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
			if err := out.write(buf[:n]); err != nil {
				return sent, clientGone(err)
			}
			sent += int64(n)
			left -= int64(n)
		}
		switch {
		case readErr == io.EOF:
			out.finish()
			return sent, nil
		case readErr != nil:
			_ = out.flush() // the abort that follows would take what came with it
			return sent, out.readFailed(r.Context(), readErr)
		case n > 0 && left != 0:
			if err := out.pause(n < len(buf)); err != nil {
				return sent, clientGone(err)
			}
			out.accepted()
		}
	}
}

// Mover is a body that the kernel can move to a socket; see http1.Body.
type Mover interface {
	Movable() bool
	Move(w io.ReaderFrom, before, after func()) (n int64, read, write error)
}

// movable is the body if nobody has to see it on its way: it goes from one plain socket to
// another, as fast as the client takes it.
func (o Options) movable(w http.ResponseWriter, r *http.Request, resp *http.Response) Mover {
	body, ok := resp.Body.(Mover)
	if !ok || o.Buffer != nil || o.Flush != 0 || r.TLS != nil || r.ProtoMajor != 1 || !body.Movable() || !response.Plain(w) {
		return nil
	}
	return body
}

func (o Options) move(w http.ResponseWriter, r *http.Request, body Mover) (int64, error) {
	out := o.newOutput(w, r)
	n, read, write := body.Move(w.(io.ReaderFrom), out.deadline, out.accepted)
	switch {
	case write != nil:
		return n, clientGone(write)
	case read != nil:
		return n, out.readFailed(r.Context(), read)
	}
	out.finish()
	return n, nil
}

// source is the body, through the buffer if there is one.
func (o Options) source(resp *http.Response) (src io.Reader, stop func()) {
	if o.Buffer == nil {
		return resp.Body, func() {}
	}
	b := startBuffer(resp.Body, *o.Buffer)
	return b.reader(), b.stop
}

// newOutput returns the plain output, or one with deadlines or a flush interval.
func (o Options) newOutput(w http.ResponseWriter, r *http.Request) output {
	out := output{w: w, each: o.Flush < 0, timeout: o.WriteTimeout}
	if end, ok := r.Context().Deadline(); ok {
		out.end = end.Add(lastWrite)
	}
	if o.Flush > 0 {
		out.late = newLateFlush(w, o.Flush)
	}
	return out
}

// output is the client's side of a body.
type output struct {
	w       http.ResponseWriter
	each    bool // flush after each write
	timeout time.Duration
	end     time.Time  // of writes, by the request's time; zero for none
	until   time.Time  // the deadline that is set
	taken   time.Time  // when the client had accepted the last piece, if there is an end
	late    *lateFlush // nil: flush when the target pauses
}

func (o *output) write(p []byte) error {
	o.deadline()
	if o.late != nil {
		return o.late.write(p)
	}
	_, err := o.w.Write(p)
	return err
}

func (o *output) flush() error {
	o.deadline()
	if o.late != nil {
		return o.late.flush()
	}
	return flush(o.w)
}

// pause is called after each write; idle says that the target has nothing more at
// the moment.
func (o *output) pause(idle bool) error {
	if o.late != nil || !idle && !o.each {
		return nil
	}
	return o.flush()
}

// deadline gives the next write its time, by a deadline that is moved only when less than that is left. The end of
// the request's time bounds it: a write that waits for the client fails then, and the client has been too slow.
// net/http resets the deadline after the response.
func (o *output) deadline() {
	until := o.end
	if o.timeout > 0 {
		now := time.Now()
		if o.until.Sub(now) >= o.timeout {
			return
		}
		if d := now.Add(o.timeout + o.timeout/4); until.IsZero() || d.Before(until) {
			until = d
		}
	}
	if !until.Equal(o.until) {
		o.until = until
		_ = http.NewResponseController(o.w).SetWriteDeadline(until)
	}
}

// finish is called when the whole body was written. What of it stands in net/http's buffer is sent
// when the outermost handler has returned, which the end of the exchange's time must not cut: that is a
// write like each other one.
func (o *output) finish() {
	if o.until.IsZero() || !o.until.Equal(o.end) {
		return
	}
	o.end = time.Time{}
	o.deadline()
}

// accepted notes that the client has accepted a piece: from now on the target is waited for.
func (o *output) accepted() {
	if !o.end.IsZero() {
		o.taken = time.Now()
	}
}

// lastWrite is how long after the end of the request's time what has been received in time may be written. A
// deadline that has passed ends an HTTP/2 stream at once, and cuts what stands in net/http's buffer of an HTTP/1
// response: no write would be told of it.
const lastWrite = 100 * time.Millisecond

// leastWait is the time that a target is given for the next piece of a body before the end of the
// exchange's time is its failure.
const leastWait = 10 * time.Millisecond

// readFailed is the error of a body that could not be read. Where the time ran out as soon as the
// client had accepted a piece, the client was waited for.
func (o *output) readFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil && o.taken.After(o.end.Add(-lastWrite-leastWait)) {
		return clientGone(err)
	}
	return bodyBroken(ctx, err)
}

func (o *output) close() {
	if o.late != nil {
		o.late.stop()
	}
}
