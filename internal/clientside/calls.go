package clientside

import (
	"maps"
	"net/http"
	"time"
)

// SetReadDeadline sets the deadline of reads of the request's body.
func (h *Handle) SetReadDeadline(t time.Time) error {
	w, err := h.use(false)
	if err != nil {
		return err
	}
	defer h.release(false)
	return http.NewResponseController(w).SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes to the client.
func (h *Handle) SetWriteDeadline(t time.Time) error {
	w, err := h.use(false)
	if err != nil {
		return err
	}
	defer h.release(false)
	return http.NewResponseController(w).SetWriteDeadline(t)
}

// WriteDeadline returns the deadline of writes that the connection has, if its server can report it; else the zero time.
func (h *Handle) WriteDeadline() time.Time {
	w, err := h.use(false)
	if err != nil {
		return time.Time{}
	}
	defer h.release(false)
	if b, ok := innermost(w).(Bounded); ok {
		return b.WriteDeadline()
	}
	return time.Time{}
}

// EnableFullDuplex lets the handler respond over HTTP/1 before it has read the request's body to its end.
func (h *Handle) EnableFullDuplex() error {
	w, err := h.use(false)
	if err != nil {
		return err
	}
	defer h.release(false)
	return http.NewResponseController(w).EnableFullDuplex()
}

// Write writes content of the final response.
func (h *Handle) Write(p []byte) (int, error) {
	w, err := h.use(true)
	if err != nil {
		return 0, err
	}
	defer h.release(true) // also where a wrapper panics
	return w.Write(p)
}

// Flush sends the client what was written. Its error is http.ErrNotSupported if the writer can't.
func (h *Handle) Flush() error {
	w, err := h.use(true)
	if err != nil {
		return err
	}
	defer h.release(true)
	return http.NewResponseController(w).Flush()
}

// WriteInterim writes an interim response with the header fields only, through the writer's wrappers.
func (h *Handle) WriteInterim(status int, header http.Header) error {
	w, err := h.use(true)
	if err != nil {
		return err
	}
	defer h.release(true)
	writeInterim(w, status, header, h.http2)
	return nil
}

// WriteContinue has the server send a 100 (Continue).
func (h *Handle) WriteContinue() error {
	w, err := h.use(true)
	if err != nil {
		return err
	}
	defer h.release(true)
	ServerOf(w).WriteContinue()
	return nil
}

// CloseAfterResponse has the server close the connection after the response.
func (h *Handle) CloseAfterResponse() error {
	w, err := h.use(false)
	if err != nil {
		return err
	}
	defer h.release(false)
	ServerOf(w).CloseAfterResponse()
	return nil
}

// writeInterim writes an interim response to w. What filters have put into w's Header is meant for the final response,
// and must neither be sent early nor be lost (golang/go#81207, #81319).
func writeInterim(w http.ResponseWriter, status int, fields http.Header, http2 bool) {
	h := w.Header()
	kept := maps.Clone(h)
	clear(h)
	maps.Copy(h, fields)
	if http2 {
		// Where the client resets its stream, WriteHeader returns while net/http still
		// reads the map, on another goroutine. With this field in it, net/http copies the
		// map, and sends the copy without that field.
		h["Content-Length"] = noLength
	}
	defer func() { // also where a filter's writer panics
		clear(h)
		maps.Copy(h, kept)
	}()
	w.WriteHeader(status)
}

// noLength is never written to.
var noLength = []string{"0"}
