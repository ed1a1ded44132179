package engine

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// sniffed is the writer of a program's handler, which may leave it to its server to guess the Content-Type. The configuration's filters
// need it with the header, so that the header waits for the first bytes of the body.
type sniffed struct {
	http.ResponseWriter
	status int  // of the header that waits, 0 for none
	sent   bool // the header was passed on, and the type is what it is
}

// sniffLen is how many bytes http.DetectContentType considers.
const sniffLen = 512

// Unwrap is for http.ResponseController.
func (w *sniffed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *sniffed) WriteHeader(status int) {
	switch h := w.Header(); {
	case w.sent, status < 200 && status != http.StatusSwitchingProtocols:
		w.ResponseWriter.WriteHeader(status)
	case w.status != 0: // a second one, which changes nothing
	case hasType(h), status < 200, status == http.StatusNoContent, status == http.StatusNotModified:
		w.sent = true
		w.ResponseWriter.WriteHeader(status)
	default:
		w.status = status
	}
}

func hasType(h http.Header) bool {
	_, typed := h["Content-Type"]
	return typed || h.Get("Content-Encoding") != ""
}

// pass passes the header on that waits. first is the beginning of the body, nil if none is known.
func (w *sniffed) pass(first []byte) {
	if w.sent {
		return
	}
	w.sent = true
	if len(first) > 0 && !hasType(w.Header()) {
		w.Header().Set("Content-Type", http.DetectContentType(first))
	}
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// Write implements http.ResponseWriter.
func (w *sniffed) Write(p []byte) (int, error) {
	if len(p) > 0 {
		w.pass(p)
	}
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, by the writer's own once the type is known.
func (w *sniffed) ReadFrom(r io.Reader) (n int64, err error) {
	if !w.sent && !hasType(w.Header()) {
		first := make([]byte, sniffLen)
		read, err := io.ReadFull(r, first)
		if read > 0 {
			written, failed := w.Write(first[:read])
			if n = int64(written); failed != nil {
				return n, failed
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return n, nil
		default:
			return n, err
		}
	}
	w.pass(nil)
	rest, err := io.Copy(w.ResponseWriter, r)
	return n + rest, err
}

// Flush implements http.Flusher.
func (w *sniffed) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w *sniffed) FlushError() error {
	w.pass(nil)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker.
func (w *sniffed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
