package filters

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/response"
)

// Recover returns a filter that responds with 500 where a handler panics before the header of its response, and aborts the
// response where it panics later: half a page must not look whole. The panic is logged to l with its stack; nil means
// slog.Default().
//
// http.ErrAbortHandler is passed on as it is: a proxy aborts a response with it. So is the panic of a filter or another
// writer around this one, met by the handler in a write: it is for a Recover around that filter to respond.
func Recover(l *slog.Logger) Filter {
	if l == nil {
		l = slog.Default()
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headSent, around, hijacked := false, false, false
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if v == http.ErrAbortHandler || around {
					panic(v)
				}
				l.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("panic", fmt.Sprint(v)),
					slog.String("method", r.Method), slog.String("uri", r.RequestURI), slog.String("stack", string(debug.Stack())))
				if headSent {
					clientbody.LeavePanicked(w, r, &hijacked) // the server reads on before it closes the connection
					panic(http.ErrAbortHandler)
				}
				clear(w.Header()) // it was for another response
				refuse(w, r, http.StatusInternalServerError)
			}()
			response.Serve(next, w, r, &response.Hooks{
				Head: func(_ *http.Request, status int, _ http.Header) {
					headSent, hijacked = true, status == http.StatusSwitchingProtocols
				},
				Around: func(*http.Request) { around = true },
			})
		})
	}
}
