package watchcodec

import (
	"net/http"
)

// EventWriter sends events to a client of a watch, one at a time. Clients wait for the header as well as
// for each event, so both are flushed at once (kubernetes#75837).
//
// An EventWriter must not be used by several goroutines at the same time.
type EventWriter struct {
	w     http.ResponseWriter
	flush func() error
	line  []byte
}

// NewEventWriter sends the header of w with status 200 and returns an EventWriter. The default Content-Type is
// application/json. The error is that of the flush: the client has disconnected, or w can't flush,
// in which case it can't serve a watch.
func NewEventWriter(w http.ResponseWriter) (*EventWriter, error) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	return &EventWriter{w: w, flush: flush}, flush()
}

// WriteEvent sends event, a JSON object, and a newline, in one write, one chunk and one flush. An
// error means that the client has disconnected.
func (w *EventWriter) WriteEvent(event []byte) error {
	w.line = append(append(w.line[:0], event...), '\n')
	if _, err := w.w.Write(w.line); err != nil {
		return err
	}
	return w.flush()
}
