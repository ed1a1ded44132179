package filters

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/response"
)

// Recover returns a filter that responds with 500 if the handler panics before the header of its response, and aborts the
// response if it panics later: a part of a page must not look complete. It logs the panic with its stack to l. If l is
// nil, it logs to slog.Default().
//
// A panic with http.ErrAbortHandler is passed on: a proxy aborts a response with it. So is a panic of an outer filter or
// writer that is called by a write of the handler: only a Recover outside of that filter can respond.
func Recover(l *slog.Logger) culvert.Filter {
	if l == nil {
		l = slog.Default()
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			headerSent, around, hijacked := false, false, false
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
				if headerSent {
					clientbody.LeavePanicked(w, r, &hijacked) // the server reads on before it closes the connection
					panic(http.ErrAbortHandler)
				}
				clear(w.Header()) // it was that of the handler's response
				refuse(w, r, http.StatusInternalServerError)
			}()
			response.Serve(next, w, r, &response.Hooks{
				Header: func(_ *http.Request, status int, _ http.Header) {
					headerSent, hijacked = true, status == http.StatusSwitchingProtocols
				},
				Around: func(*http.Request) { around = true },
			})
		})
	}
}
