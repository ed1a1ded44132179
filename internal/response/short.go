package response

import (
	"errors"
	"strconv"
)

// length is that of a handler's content, behind which a transform of the body stands. Most take the Content-Length away, by
// which net/http's server finds a response that is short: what a handler has left of a file that it could not read to
// its end would look whole.
type length struct {
	announced int64 // by the Content-Length, -1 for none
	written   int64
	failed    error // of the first Write that did
}

var errShort = errors.New("the handler has written less than its Content-Length")

// announce notes what the header announces, before a hook changes it.
func (w *writer) announce() {
	w.length.announced = -1
	if line := w.inner.Header()["Content-Length"]; w.hooks.Body != nil && len(line) > 0 {
		if n, err := strconv.ParseInt(line[0], 10, 64); err == nil {
			w.length.announced = n
		}
	}
}

// short returns why what the handler has written is not all that it has announced, nil if it is.
func (w *writer) short() error {
	switch {
	case w.headOnly || w.length.written >= w.length.announced:
		return nil
	case w.length.failed != nil:
		return w.length.failed
	}
	return errShort
}
