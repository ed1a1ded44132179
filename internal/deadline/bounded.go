package deadline

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// OwnTimeout is how long a client may take to accept a piece of what a handler of this module responds with by itself,
// a refusal for instance.
const OwnTimeout = time.Minute

// piece is how much is written at once of a longer response: the time of a write is that of one piece.
const piece = 64 << 10

// Bounded is a writer for a response that a handler makes itself. Each write of a piece of it is bounded, and so is
// what the server writes when the handler has returned. Leave or LeaveWritten must be called when the response is there
// as a whole.
//
// It has no ReadFrom: the time of a write would be that of the reads of a slow source, too.
type Bounded struct {
	http.ResponseWriter
	writes Deadline
	wrote  bool        // a header, content or a flush
	own    atomic.Bool // the handler sets deadlines itself
}

// Bound returns a Bounded around w, which responds to r. timeout bounds each piece, to a quarter; 0 means no bound. The
// deadline of r's context is none of the response: one that tells that the request's time is over is sent behind it.
func Bound(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Bounded {
	b := &Bounded{ResponseWriter: w}
	b.writes.StartWrites(w, r, timeout)
	b.writes.Change(max(timeout, 0), time.Time{})
	return b
}

// BoundUnbounded is Bound where the server has no WriteTimeout. Where it has one, which is one for the whole response,
// that stays.
func BoundUnbounded(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Bounded {
	if serverTimeout(r) > 0 {
		return &Bounded{ResponseWriter: w}
	}
	return Bound(w, r, timeout)
}

// BoundOwn is BoundUnbounded with OwnTimeout, for where no option says how long a client may take.
func BoundOwn(w http.ResponseWriter, r *http.Request) *Bounded {
	return BoundUnbounded(w, r, OwnTimeout)
}

// BoundHeld is Bound with OwnTimeout for a response that was held while another handler made it. A deadline that this one
// has left for what the server still had to write is not that of the response. Package proxy leaves one in the place of the
// server's WriteTimeout, which is gone by then.
func BoundHeld(w http.ResponseWriter, r *http.Request) *Bounded {
	b := Bound(w, r, OwnTimeout)
	if b.writes.stream != nil {
		_ = set(w, true, time.Time{})
	}
	return b
}

// serverTimeout returns the WriteTimeout of the server that r came to, 0 for none.
func serverTimeout(r *http.Request) time.Duration {
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s != nil {
		return max(0, s.WriteTimeout)
	}
	return 0
}

// Writer returns b for a handler that may not be of this module: it asserts what w is.
func (b *Bounded) Writer() http.ResponseWriter {
	if _, ok := b.ResponseWriter.(http.Hijacker); ok {
		return hijackable{b}
	}
	return b
}

// hijackable is a Bounded around an http.Hijacker.
type hijackable struct{ *Bounded }

// Hijack serves handlers that assert http.Hijacker.
func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// Unwrap serves http.ResponseController.
func (b *Bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// SetWriteDeadline serves http.ResponseController. A handler that calls it bounds what it writes itself from then on. It may
// be called by any goroutine.
func (b *Bounded) SetWriteDeadline(t time.Time) error {
	b.own.Store(true)
	return set(b.ResponseWriter, true, t)
}

// begin gives an operation its time.
func (b *Bounded) begin() {
	if !b.own.Load() {
		b.writes.Begin()
	}
}

// WriteHeader sends an interim response at once, and leaves a final header to the server.
func (b *Bounded) WriteHeader(status int) {
	if status >= 200 {
		b.wrote = true
		b.ResponseWriter.WriteHeader(status)
		return
	}
	b.begin()
	defer b.writes.End()
	b.ResponseWriter.WriteHeader(status)
}

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
	b.begin()
	defer b.writes.End()
	n, err := b.ResponseWriter.Write(p)
	if err == nil && n < len(p) { // a wrapper that breaks io.Writer's contract
		err = io.ErrShortWrite
	}
	return n, err
}

// Flush serves handlers that assert http.Flusher.
func (b *Bounded) Flush() { _ = b.FlushError() }

// FlushError serves http.ResponseController.
func (b *Bounded) FlushError() error {
	b.wrote = true
	b.begin()
	defer b.writes.End()
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Leave ends the use of b. What the server holds is written when the handler has returned.
func (b *Bounded) Leave() {
	if b.own.Load() {
		b.writes.Stop()
		return
	}
	b.writes.Leave()
}

// LeaveWritten is Leave for a response that a handler around may give: where nothing was written through b, no
// deadline stays. One of an HTTP/2 stream would cut what that handler writes, however fast its client is.
func (b *Bounded) LeaveWritten() {
	if !b.wrote {
		b.writes.Clear() // behind an interim response
		b.writes.Stop()
		return
	}
	b.Leave()
}
