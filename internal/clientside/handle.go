package clientside

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// ErrEnded is the error of a call for a handler that has returned.
var ErrEnded = fmt.Errorf("the handler has returned: %w", net.ErrClosed)

// Handle is what a handler has of its client, from Start until End. Before and after, its calls fail with ErrEnded.
// All methods are safe for concurrent use, but for Start and Writer, which are for the handler's own goroutine. A Handle
// must not be copied, and not be started again while another goroutine may still call it: it would reach another handler's
// client.
type Handle struct {
	http2 bool

	// mu guards what follows, but for reads of w on the handler's goroutine. It is not held while w is used, which may take
	// long.
	mu      sync.Mutex
	w       http.ResponseWriter // nil: not started, or ended
	using   int                 // calls that use w
	waiting int                 // those of them that may wait for the client
	unused  sync.Cond           // of mu, signalled when a call has returned
}

// New returns a Handle that was started.
func New(w http.ResponseWriter, r *http.Request) *Handle {
	h := new(Handle)
	h.Start(w, r)
	return h
}

// Start binds h to the handler that responds to r with w.
func (h *Handle) Start(w http.ResponseWriter, r *http.Request) {
	h.http2, h.w, h.unused.L = r.ProtoMajor == 2, w, &h.mu
}

// StartOuter is Start for a handler around the one that inner is bound to, with that handler's writer w.
func (h *Handle) StartOuter(w http.ResponseWriter, inner *Handle) {
	h.http2, h.w, h.unused.L = inner.http2, w, &h.mu
}

// End makes later calls fail with ErrEnded, and waits for those that are under way. It fails one that waits for the client,
// over HTTP/2 by a reset of the stream, which net/http can't send before the frame that its connection is sending. The
// handler must call it before it returns. It may be called again, and by any goroutine.
func (h *Handle) End() {
	h.mu.Lock()
	w, used, waiting := h.w, h.using > 0, h.waiting > 0
	h.w = nil
	h.mu.Unlock()
	if !used {
		return
	}
	defer h.wait() // also where a wrapper panics
	if w != nil && waiting {
		_ = http.NewResponseController(w).SetWriteDeadline(Past)
	}
}

// Past is a deadline that fails reads and writes at once, also those that are under way.
var Past = time.Unix(1, 0)

// wait waits until no call uses the writer.
func (h *Handle) wait() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.using > 0 {
		h.unused.Wait()
	}
}

// Writer returns the handler's writer, nil after End. The handler's own goroutine, which uses nothing of it after End, need
// not be counted as the calls of others are.
func (h *Handle) Writer() http.ResponseWriter { return h.w }

// use counts a call of the writer, which it returns, unless the handler has returned. release must be called after it.
// waits reports whether the call may wait for the client.
func (h *Handle) use(waits bool) (w http.ResponseWriter, err error) {
	h.mu.Lock()
	if w = h.w; w != nil {
		h.count(1, waits)
	} else {
		err = ErrEnded
	}
	h.mu.Unlock()
	return w, err
}

func (h *Handle) count(n int, waits bool) {
	h.using += n
	if waits {
		h.waiting += n
	}
}

// release ends a call that use has counted.
func (h *Handle) release(waits bool) {
	h.mu.Lock()
	h.count(-1, waits)
	if h.w == nil {
		h.unused.Broadcast()
	}
	h.mu.Unlock()
}
