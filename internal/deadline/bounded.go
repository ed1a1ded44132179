package deadline

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
)

// OwnTimeout bounds how long a client may take to accept a piece of a response that a handler of this module makes
// itself, a refusal for instance.
const OwnTimeout = time.Minute

// piece is the most that is written at once, in bytes: the timeout of a write is that of one piece.
const piece = 64 << 10

// filePiece is piece for a file, whose bytes the kernel may move: each piece is a system call.
const filePiece = 256 << 10

// Bounded is a writer for a response that a handler makes itself. It bounds each write of a piece of the response, and
// what the server writes after the handler has returned. Leave or LeaveWritten must be called when the whole response
// has been written to it.
//
// It has no ReadFrom: the reads of a slow source would count as the time of a write. SendFile is for files.
type Bounded struct {
	http.ResponseWriter
	client clientside.Handle // from Bound until Leave
	writes Deadline
	wrote  bool        // a header, content or a flush
	own    atomic.Bool // the handler has set a deadline itself
}

// Bound returns a Bounded around w, which responds to r. timeout bounds each piece; it may be exceeded by a quarter, and
// 0 means no bound. The deadline of r's context does not bound the response: one that reports that the request has timed
// out is sent after that deadline.
func Bound(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Bounded {
	b := newBounded(w, r)
	b.writes.StartWrites(&b.client, r, timeout)
	b.writes.Change(max(timeout, 0), time.Time{})
	return b
}

// newBounded returns a Bounded that sets no deadline.
func newBounded(w http.ResponseWriter, r *http.Request) *Bounded {
	b := &Bounded{ResponseWriter: w}
	b.client.Start(w, r)
	return b
}

// BoundUnbounded is Bound if the server has no WriteTimeout. If it has one, which bounds the whole response, that one is
// kept and the Bounded sets no deadline.
func BoundUnbounded(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Bounded {
	if serverTimeout(r) > 0 {
		return newBounded(w, r)
	}
	return Bound(w, r, timeout)
}

// BoundOwn is BoundUnbounded with OwnTimeout, for handlers without an option for the timeout.
func BoundOwn(w http.ResponseWriter, r *http.Request) *Bounded {
	return BoundUnbounded(w, r, OwnTimeout)
}

// BoundHeld is Bound with OwnTimeout for a response that was held back while another handler made it. That handler may
// have left a deadline for what the server had still to write, as package proxy does in place of the server's
// WriteTimeout. BoundHeld removes it, since it does not apply to the response that is written now.
func BoundHeld(w http.ResponseWriter, r *http.Request) *Bounded {
	b := Bound(w, r, OwnTimeout)
	if b.writes.stream != nil {
		_ = b.client.SetWriteDeadline(time.Time{})
	}
	return b
}

// serverTimeout returns the WriteTimeout of the server that received r, 0 for none.
func serverTimeout(r *http.Request) time.Duration {
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s != nil {
		return max(0, s.WriteTimeout)
	}
	return 0
}

// Writer returns b for a handler that may come from another module, and may assert http.Hijacker: the result implements
// it if w does.
func (b *Bounded) Writer() http.ResponseWriter {
	if _, ok := b.ResponseWriter.(http.Hijacker); ok {
		return hijackable{b}
	}
	return b
}

// hijackable is a Bounded around an http.Hijacker.
type hijackable struct{ *Bounded }

// Hijack implements http.Hijacker.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (b *Bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Discards reports whether the wrapped writer discards content; see package response.
func (b *Bounded) Discards() bool {
	d, ok := b.ResponseWriter.(interface{ Discards() bool })
	return ok && d.Discards()
}

// SetWriteDeadline sets the deadline of w's writes, for http.ResponseController. From then on b sets none: the handler
// bounds its writes itself. It is safe for concurrent use with the other methods.
func (b *Bounded) SetWriteDeadline(t time.Time) error {
	b.own.Store(true)
	return b.client.SetWriteDeadline(t)
}

// startWrite sets the deadline of a write or flush, unless the handler has set one itself.
func (b *Bounded) startWrite() {
	if !b.own.Load() {
		b.writes.Begin()
	}
}

// WriteHeader bounds the write of an interim response, which is sent at once. The server sends a final header later.
func (b *Bounded) WriteHeader(status int) {
	if status >= 200 {
		b.wrote = true
		b.ResponseWriter.WriteHeader(status)
		return
	}
	b.startWrite()
	defer b.writes.End()
	b.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer. A large p is written in pieces, each of which is bounded.
func (b *Bounded) Write(p []byte) (n int, err error) {
	for len(p) > piece && err == nil {
		var m int
		m, err = b.write(p[:piece])
		n, p = n+m, p[m:]
	}
	if err != nil {
		return n, err
	}
	m, err := b.write(p)
	return n + m, err
}

func (b *Bounded) write(p []byte) (int, error) {
	b.wrote = true
	b.startWrite()
	defer b.writes.End()
	n, err := b.ResponseWriter.Write(p)
	if err == nil && n < len(p) { // a wrapper that breaks io.Writer's contract
		err = io.ErrShortWrite
	}
	return n, err
}

// SendFile writes n bytes of f, an open file, in pieces, each of which is bounded. The wrapped writer may have the kernel move
// them. The error is io.EOF if f has fewer bytes.
func (b *Bounded) SendFile(f io.Reader, n int64) error {
	b.wrote = true
	for n > 0 {
		m := min(n, filePiece)
		b.startWrite()
		_, err := io.CopyN(b.ResponseWriter, f, m)
		b.writes.End()
		if err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// Flush implements http.Flusher.
func (b *Bounded) Flush() { _ = b.FlushError() }

// FlushError flushes w, for http.ResponseController.
func (b *Bounded) FlushError() error {
	b.wrote = true
	b.startWrite()
	defer b.writes.End()
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Leave ends the use of b. It sets a deadline for the rest of the response, which the server writes after the handler has
// returned.
func (b *Bounded) Leave() {
	defer b.client.End()
	if b.own.Load() {
		b.writes.Stop()
		return
	}
	b.writes.Leave()
}

// LeaveWritten is Leave where an outer handler makes the response if nothing was written through b. Then it leaves no
// deadline behind: the deadline of an HTTP/2 stream would cut off that response, however fast its client is.
func (b *Bounded) LeaveWritten() {
	if !b.wrote {
		b.writes.Clear() // set for an interim response
		b.writes.Stop()
		b.client.End()
		return
	}
	b.Leave()
}
