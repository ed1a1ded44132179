package response

import (
	"errors"
	"strconv"
)

// length compares the length of a handler's content with its Content-Length, where a transform changes the body. Most
// transforms delete the Content-Length, by which net/http's server detects a response that is too short. Without this
// check the part of a file that could not be read to its end would look complete.
type length struct {
	announced int64 // the Content-Length, -1 for none
	written   int64
	writeErr  error // of the first Write that failed
}

var errShort = errors.New("the handler has written less than its Content-Length")

// noteContentLength records the handler's Content-Length before a hook changes it.
func (w *writer) noteContentLength() {
	w.length.announced = -1
	if line := w.inner.Header()["Content-Length"]; w.hooks.Body != nil && len(line) > 0 {
		if n, err := strconv.ParseInt(line[0], 10, 64); err == nil {
			w.length.announced = n
		}
	}
}

// shortError returns why the handler has written less than its Content-Length, nil if it has not.
func (w *writer) shortError() error {
	switch {
	case w.headRequest || w.length.written >= w.length.announced:
		return nil
	case w.length.writeErr != nil:
		return w.length.writeErr
	case w.writeErr != nil: // of a flush, whose error the handler has got
		return w.writeErr
	}
	return errShort
}
