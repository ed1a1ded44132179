package response

import (
	"errors"
	"io"
	"net/http"
)

// Receiver is the http.ResponseWriter for a response that this program reads itself. It drops interim responses.
type Receiver struct {
	open   func(status int, h http.Header) (io.WriteCloser, error)
	cancel func()
	header http.Header

	opened  bool
	content io.WriteCloser // what open has returned
	err     error          // of open or content.Write
}

// NewReceiver returns a Receiver that calls open with the final header, and writes the content to what that returns. It calls
// cancel, which ends the request, if the rest of the response is of no use: open or a Write has failed.
func NewReceiver(open func(status int, h http.Header) (io.WriteCloser, error), cancel func()) *Receiver {
	return &Receiver{open: open, cancel: cancel, header: http.Header{}}
}

// Header implements http.ResponseWriter.
func (r *Receiver) Header() http.Header { return r.header }

var errOpenPanicked = errors.New("the function that is called with the header has panicked")

// WriteHeader implements http.ResponseWriter.
func (r *Receiver) WriteHeader(status int) {
	if status < 200 || r.opened {
		return
	}
	r.opened, r.err = true, errOpenPanicked
	if r.content, r.err = r.open(status, r.header); r.err != nil {
		r.cancel()
	}
}

// Write implements io.Writer. The handler learns that its client is not to blame for a failure.
func (r *Receiver) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.err == nil {
		if _, r.err = r.content.Write(p); r.err != nil {
			r.cancel()
		}
	}
	if r.err != nil {
		return 0, &TransformError{r.err}
	}
	return len(p), nil
}

// Flush is for handlers that assert http.Flusher. Content is not buffered: Flush only sends the header, as net/http's does.
func (r *Receiver) Flush() { r.WriteHeader(http.StatusOK) }

// FlushError is for http.ResponseController.
func (r *Receiver) FlushError() error {
	r.Flush()
	return nil
}

// Discards is for the function Discards: it reports whether what open has returned discards the content.
func (r *Receiver) Discards() bool { return discards(r.content) }

// Err returns the failure of the response so far: that of its header or of a Write.
func (r *Receiver) Err() error { return r.err }

// Close is called when the handler has returned. It returns Err, or closes the content.
func (r *Receiver) Close() error {
	if r.WriteHeader(http.StatusOK); r.err != nil {
		return r.err
	}
	return r.content.Close()
}
