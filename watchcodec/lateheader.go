package watchcodec

import (
	"maps"
	"net/http"

	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/response"
)

// lateHeader sends a list's header with its first bytes, so that a list that turns out to be
// malformed can be replaced by a Status.
type lateHeader struct {
	http.ResponseWriter
	header heldHeader
	status int // of the header that is held, 0 for none
	sent   bool
	failed bool              // a whole Status was sent
	bounds *deadline.Bounded // of writes after the handler has returned, nil before
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (l *lateHeader) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// HoldsHeader implements clientside.Holder.
func (l *lateHeader) HoldsHeader() bool { return !l.sent }

// Discards implements response.Discards.
func (l *lateHeader) Discards() bool { return response.Discards(l.ResponseWriter) }

// WriteHeader implements http.ResponseWriter.
func (l *lateHeader) WriteHeader(status int) {
	switch {
	case status >= 200 && l.status == 0 && !l.sent:
		l.status = status
		l.header.hold(l.Header())
	case status < 200:
		l.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (l *lateHeader) Write(p []byte) (int, error) {
	l.send()
	return l.ResponseWriter.Write(p)
}

// Flush is for handlers that assert http.Flusher.
func (l *lateHeader) Flush() { _ = l.FlushError() }

// FlushError is for http.ResponseController. It does nothing before the first byte: clients do not
// wait for the header of a list alone.
func (l *lateHeader) FlushError() error {
	if !l.sent {
		return nil
	}
	return http.NewResponseController(l.ResponseWriter).Flush()
}

func (l *lateHeader) send() {
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

// boundWrites is called when the next handler has returned, or when its response is replaced: it
// bounds the writes that follow.
func (l *lateHeader) boundWrites(r *http.Request) {
	if l.bounds == nil {
		l.bounds = deadline.BoundHeld(l.ResponseWriter, r)
		l.ResponseWriter = l.bounds
	}
}

// unboundWrites ends boundWrites.
func (l *lateHeader) unboundWrites() { l.bounds.Leave() }

// fail replaces the response by a Status and returns true, unless a part of the response was sent
// already. The Status is bounded here: the next handler bounds its own writes, and so only what is
// sent of the list.
func (l *lateHeader) fail(x *exchange, r *http.Request, err error) bool {
	if l.sent {
		return false
	}
	l.sent, l.failed = true, true
	l.boundWrites(r)
	x.fail(l.ResponseWriter, err)
	return true
}
