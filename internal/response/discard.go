package response

import (
	"io"
	"net/http"
)

// Discard is the body transform for responses to HEAD, for filters that change the length of the content. Without it, if
// a handler writes its content for HEAD as well, net/http's server would send the length of the unchanged content, which
// the response to GET does not have (RFC 9110 section 8.6).
var Discard io.WriteCloser = discard{}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (discard) Close() error { return nil }

func (discard) Discards() bool { return true }

// Discards reports whether w discards all content that is written to it from now on: a filter sends other content in its
// place, or none. It must be called after the final header. A handler then need not wait for the rest of its content. If
// it stops before its end, it must call Abandon.
//
// A ResponseWriter, or a transform of Hooks.Body, discards content if its method Discards() bool returns true. It is
// called on the goroutine of the handler, while no write or flush is under way. Once true, it must remain true. A
// ResponseWriter that only passes content on must have the method as well: content may matter to any other one.
func Discards(w http.ResponseWriter) bool { return discards(w) }

func discards(v any) bool {
	d, ok := v.(interface{ Discards() bool })
	return ok && d.Discards()
}

// Discards is for the function Discards. The content of a transform inside of a writer that discards is of no use either.
func (w *writer) Discards() bool { return discards(w.body) || discards(w.inner) }

// Abandon is called by a handler that stops before the end of its content, since Discards(w) is true. The transforms
// inside of the one that discards are not closed, as those of an aborted response: they have not received the whole
// content.
func Abandon(w http.ResponseWriter) {
	for {
		own, ok := w.(*writer)
		if ok && discards(own.body) {
			return
		}
		outer, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps || !discards(outer.Unwrap()) {
			return
		}
		if ok {
			own.abandoned = true
		}
		w = outer.Unwrap()
	}
}
