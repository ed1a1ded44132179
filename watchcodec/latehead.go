package watchcodec

import (
	"maps"
	"net/http"

	"github.com/culvert-go/culvert/internal/deadline"
)

// lateHead sends a list's head with its first bytes, so that a list that turns out to be
// none can still be answered with a Status.
type lateHead struct {
	http.ResponseWriter
	header heldHeader
	status int // of the head that waits, 0 for none
	sent   bool
	failed bool              // a Status was sent, as a whole
	bounds *deadline.Bounded // of what is written behind the handler, nil before
}

// Unwrap serves http.ResponseController.
func (l *lateHead) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *lateHead) WriteHeader(status int) {
	switch {
	case status >= 200 && l.status == 0 && !l.sent:
		l.status = status
		l.header.hold(l.Header())
	case status < 200:
		l.ResponseWriter.WriteHeader(status)
	}
}

func (l *lateHead) Write(p []byte) (int, error) {
	l.send()
	return l.ResponseWriter.Write(p)
}

// Flush serves handlers that assert http.Flusher.
func (l *lateHead) Flush() { _ = l.FlushError() }

// FlushError serves http.ResponseController. Nobody waits for the head of a list alone.
func (l *lateHead) FlushError() error {
	if !l.sent {
		return nil
	}
	return http.NewResponseController(l.ResponseWriter).Flush()
}

func (l *lateHead) send() {
	if l.sent {
		return
	}
	l.sent = true
	if l.status != 0 {
		later := l.header.restore(l.Header())
		l.ResponseWriter.WriteHeader(l.status)
		maps.Copy(l.Header(), later) // trailers
	}
}

// finish is called when the handler behind has returned, or its response is replaced: what is sent from now on is bounded here.
func (l *lateHead) finish(r *http.Request) {
	if l.bounds == nil {
		l.bounds = deadline.BoundHeld(l.ResponseWriter, r)
		l.ResponseWriter = l.bounds
	}
}

// leave ends finish.
func (l *lateHead) leave() { l.bounds.Leave() }

// fail answers with a Status, if nothing was sent yet. It is bounded here: whoever bounds what is written to the list's filter
// bounds what that writes of the list.
func (l *lateHead) fail(a *answer, r *http.Request, err error) bool {
	if l.sent {
		return false
	}
	l.sent, l.failed = true, true
	l.finish(r)
	a.fail(l.ResponseWriter, err)
	return true
}
