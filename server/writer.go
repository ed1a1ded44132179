package server

import (
	"fmt"
	"net"
	"net/http"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
)

// writer is the http.ResponseWriter of a request, and a clientside.Server. What was written is buffered behind the header,
// which is made when it is sent: a response that fits is sent in one piece, with its length.
type writer struct {
	x                *exchange
	http11           bool
	head             bool // HEAD
	wantsClose       bool // the client
	wants10KeepAlive bool // the client, which speaks HTTP/1.0
	mayContinue      atomic.Bool
	continued        atomic.Bool // a 100 (Continue) was sent
	closeAfter       atomic.Bool // CloseAfterResponse was called

	// mu guards what follows. It is held while the response is written.
	mu        sync.Mutex
	left      bool // the handler has returned
	hijacked  bool
	header    http.Header
	status    int
	frozen    bool // the final header's fields are in out; nothing changes them
	committed bool // the whole header is
	chunked   bool
	untilEnd  bool  // the response ends with the connection
	close     bool  // the connection ends with the response
	declared  int64 // Content-Length, -1 for none
	written   int64
	err       error // of a write to the client
	set       fieldsSet
	format    fieldnames.Format // without Names: the server's own
	marks     []mark            // in a frozen header that is written by format
	marksRoom [8]mark           // for marks
	out       output
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left {
		return make(http.Header) // the handler's may be in use
	}
	if w.header == nil {
		if l := w.x.lent; l != nil {
			w.header = l.reply
		} else {
			w.header = make(http.Header)
		}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.left:
		return
	case w.hijacked:
		w.logCaller("response.WriteHeader on hijacked connection")
		return
	case w.frozen:
		w.logCaller("superfluous response.WriteHeader call")
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		if w.http11 { // clients of HTTP/1.0 know no interim responses (RFC 9110 section 15.2)
			w.writeInterim(status)
		}
		return
	}
	w.freeze(status)
}

// logCaller logs a mistake of the handler.
func (w *writer) logCaller(what string) {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "github.com/culvert-go/culvert/server.(*") || !more {
			w.x.c.server.logf("http: %s from %s (%s:%d)", what, frame.Function, path.Base(frame.File), frame.Line)
			return
		}
	}
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if send, err := w.startWrite(len(p)); !send {
		return len(p), err
	} else if err != nil {
		return 0, err
	}
	if len(p) <= w.out.room() {
		w.out.append(p)
		return len(p), nil
	}
	return w.writeLarge(p)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if send, err := w.startWrite(len(s)); !send {
		return len(s), err
	} else if err != nil {
		return 0, err
	}
	if len(s) <= w.out.room() {
		w.out.buf = append(w.out.buf, s...)
		return len(s), nil
	}
	return w.writeLarge([]byte(s))
}

// writeLarge writes what does not fit into the buffer.
func (w *writer) writeLarge(p []byte) (int, error) {
	if w.head {
		w.out.append(p[:w.out.room()]) // to know its type; it is not sent
		return len(p), nil
	}
	n := 0
	if !w.committed {
		if n = sniffLen - len(w.out.body()); n > 0 {
			n = min(n, len(p), w.out.room())
			w.out.append(p[:n])
		}
		n = max(n, 0)
		w.commit(false)
	}
	if w.send(p[n:], false); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// startWrite begins a write of n bytes. It reports whether they are to be sent; if not, the write is done. The caller holds
// w.mu.
func (w *writer) startWrite(n int) (send bool, err error) {
	switch {
	case w.left:
		return true, clientside.ErrEnded
	case w.hijacked:
		if n > 0 {
			w.logCaller("response.Write on hijacked connection")
		}
		return true, http.ErrHijacked
	}
	if !w.frozen {
		w.freeze(http.StatusOK)
	}
	if n == 0 {
		return false, nil
	}
	if !bodyAllowed(w.status) {
		return true, http.ErrBodyNotAllowed
	}
	w.written += int64(n)
	if w.head && w.committed {
		return false, nil
	}
	if w.declared != -1 && w.written > w.declared {
		return true, http.ErrContentLength
	}
	return true, w.err
}

// bodyAllowed reports whether a response with a status may have a body (RFC 9110 section 6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.left:
		return clientside.ErrEnded
	case w.hijacked:
		return http.ErrHijacked
	}
	w.flush()
	return w.err
}

// flush sends what there is. The caller holds w.mu.
func (w *writer) flush() {
	if !w.frozen {
		w.freeze(http.StatusOK)
	}
	if !w.committed {
		w.commit(false)
	}
	w.send(nil, false)
}

// WriteContinue implements clientside.Server.
func (w *writer) WriteContinue() {
	if !w.mayContinue.Load() { // without w.mu, which a write may hold that waits for the client
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left || w.hijacked || !w.mayContinue.Swap(false) {
		return
	}
	w.continued.Store(true)
	w.write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
}

// RequestHeader implements clientside.Receiver.
func (w *writer) RequestHeader() (size int, pipelined bool) { return w.x.headerSize, w.x.pipelined }

// CloseAfterResponse implements clientside.Server.
func (w *writer) CloseAfterResponse() { w.closeAfter.Store(true) }

// SetReadDeadline is for http.ResponseController.
func (w *writer) SetReadDeadline(t time.Time) error {
	if !w.x.c.setReadDeadline(w.x, t) {
		return clientside.ErrEnded
	}
	return nil
}

// SetWriteDeadline is for http.ResponseController.
func (w *writer) SetWriteDeadline(t time.Time) error {
	ok, err := w.x.c.setWriteDeadline(w.x, t)
	if !ok {
		return clientside.ErrEnded
	}
	return err
}

// WriteDeadline implements clientside.Bounded.
func (w *writer) WriteDeadline() time.Time {
	c := w.x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes.set
}

// EnableFullDuplex is for http.ResponseController. The response may always be written before the request was read.
func (w *writer) EnableFullDuplex() error { return nil }

// leave makes the methods fail from now on, since the handler has returned. It reports whether the handler has taken the
// connection. It ends a write that is under way.
func (w *writer) leave() (hijacked bool) {
	c := w.x.c
	interrupted := !w.mu.TryLock()
	if interrupted {
		c.interruptWrite()
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if interrupted && w.err == nil && !w.hijacked { // it was another call, or the write had ended
		c.resumeWrites()
	}
	w.left = true
	return w.hijacked
}

// finish sends the rest of the response. It reports whether the client has received all of it, as far as is known.
func (w *writer) finish() bool {
	defer w.out.free()
	if !w.frozen {
		w.freeze(http.StatusOK)
	}
	if !w.committed {
		w.commit(true)
	}
	short := w.declared != -1 && w.written != w.declared && !w.head && bodyAllowed(w.status)
	if short {
		w.send(nil, false)
		w.close = true
		return false
	}
	w.send(nil, true)
	w.close = w.close || w.closeAfter.Load()
	if w.err != nil {
		w.cut()
	}
	return w.err == nil
}

// abort drops what was not sent, since the handler has panicked.
func (w *writer) abort() {
	w.out.free()
	w.cut()
}

// cut ends a response that lacks something. One that ends with its connection must not look whole: the connection is reset,
// and over TLS its end is not announced.
func (w *writer) cut() {
	if !w.committed || !w.untilEnd {
		return
	}
	raw := w.x.c.rwc
	if t, ok := raw.(interface{ NetConn() net.Conn }); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
	_ = raw.Close()
}
