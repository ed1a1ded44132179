package filters

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/culvert-go/culvert/internal/response"
)

// Recover returns a filter that answers 500 where a handler panics before the head
// of its answer, and aborts the answer where it panics later: half a page must not
// look whole. The panic goes to l with its stack; nil means slog.Default().
//
// http.ErrAbortHandler passes as it is: it is how a proxy aborts an answer.
func Recover(l *slog.Logger) Filter {
	if l == nil {
		l = slog.Default()
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headSent := false
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if v == http.ErrAbortHandler {
					panic(v)
				}
				l.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("panic", fmt.Sprint(v)),
					slog.String("method", r.Method), slog.String("uri", r.RequestURI), slog.String("stack", string(debug.Stack())))
				if headSent {
					panic(http.ErrAbortHandler)
				}
				clear(w.Header()) // it was for another answer
				refuse(w, r, http.StatusInternalServerError)
			}()
			response.Serve(next, w, r, &response.Hooks{Head: func(*http.Request, int, http.Header) { headSent = true }})
		})
	}
}
