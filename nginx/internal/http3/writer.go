package http3

import "net/http"

// writer keeps from a response what HTTP/3 does not have (RFC 9114 section 4.2).
type writer struct {
	http.ResponseWriter
	conn  *conn
	head  bool
	final bool // the header was written
}

// connectionFields are about a connection of HTTP/1.
var connectionFields = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if !w.final {
		w.prepare(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// prepare changes the header of a response that is about to be written.
func (w *writer) prepare(status int) {
	h := w.Header()
	closes := h.Get("Connection") == "close"
	for _, name := range connectionFields {
		delete(h, name)
	}
	if status < http.StatusOK {
		return
	}
	w.final = true
	if closes {
		w.conn.retire()
	}
	if _, has := h["Content-Length"]; !has && (w.head || status == http.StatusNoContent || status == http.StatusNotModified) {
		h["Content-Length"] = nil // quic-go would send 0
	}
}

// Write implements http.ResponseWriter.
func (w *writer) Write(b []byte) (int, error) {
	if !w.final {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// FlushError sends what was written.
func (w *writer) FlushError() error {
	if !w.final {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// Unwrap is for http.ResponseController, which sets deadlines.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
