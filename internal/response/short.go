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
	err       error // of the first Write or Flush that failed
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

// fail records the error of a Write or Flush of the transform, which the handler may ignore: most do.
func (l *length) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// lost returns why the transform has not received all of the content, nil if it has: one of its methods has failed, or the
// handler has written less than its Content-Length.
func (w *writer) lost() error {
	switch {
	case w.headRequest:
		return nil
	case w.length.err != nil:
		return w.length.err
	case w.length.written >= w.length.announced:
		return nil
	case w.writeErr != nil: // of a flush, whose error the handler has got
		return w.writeErr
	}
	return errShort
}
