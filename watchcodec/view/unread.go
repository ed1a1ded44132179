package view

import (
	"net/http"
	"time"
)

// unreadWatch is the writer of a watch whose request announces a body. The time for that ends with the header: behind it the
// server reads to notice a client that leaves, and would take the end of the time for that.
type unreadWatch struct {
	http.ResponseWriter
	sent bool
}

// Unwrap serves http.ResponseController.
func (u *unreadWatch) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// Flush serves handlers that assert http.Flusher.
func (u *unreadWatch) Flush() { _ = u.FlushError() }

// FlushError serves http.ResponseController.
func (u *unreadWatch) FlushError() error {
	controller := http.NewResponseController(u.ResponseWriter)
	err := controller.Flush()
	if !u.sent {
		u.sent = true
		_ = controller.SetReadDeadline(time.Time{})
	}
	return err
}
