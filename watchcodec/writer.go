package watchcodec

import (
	"net/http"
)

// Writer sends events to a client of a watch, one at a time. Clients wait for the
// head as well as for each event, so both leave at once (kubernetes#75837).
//
// A Writer must not be used by several goroutines at once.
type Writer struct {
	w     http.ResponseWriter
	flush func() error
	line  []byte
}

// NewWriter sends the head of w with status 200 and returns the writer. If w has
// no Content-Type it becomes application/json. The error is that of the flush: the
// client is gone, or w can't flush, and then no watch can be served.
func NewWriter(w http.ResponseWriter) (*Writer, error) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	return &Writer{w: w, flush: flush}, flush()
}

// WriteEvent sends event, a JSON object, and a newline: one write, one chunk, one
// flush. An error means that the client is gone.
func (w *Writer) WriteEvent(event []byte) error {
	w.line = append(append(w.line[:0], event...), '\n')
	if _, err := w.w.Write(w.line); err != nil {
		return err
	}
	return w.flush()
}
