package cachectl

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
)

// maxRoutes bounds the pairs of route and status that a filter of Warn remembers. After that many it
// logs nothing more.
const maxRoutes = 1000

// Warn returns a filter that logs error pages that would stick (see Sticks), and responses with a
// Set-Cookie that are public: once for each route and status, for the first 1000 of them, where the
// route is the pattern of the ServeMux that matched, or else the path. It changes no response; put it
// outside of New's filter to see what that leaves. It is an error if log is nil.
func Warn(log *slog.Logger) (func(http.Handler) http.Handler, error) {
	if log == nil {
		return nil, errors.New("cachectl: Warn without a log")
	}
	w := &warner{log: log, warned: map[route]bool{}}
	return atHeader(w.check), nil
}

type route struct {
	pattern string
	status  int
}

type warner struct {
	log *slog.Logger

	mu     sync.Mutex
	warned map[route]bool
}

func (w *warner) check(resp *Response) {
	r, status := resp.Request, resp.Status
	if v, sticks := Sticks(resp); sticks {
		w.warnOnce(r, status, "an error page sticks: nothing says for how long it may be kept", "cache", v.Cache, "because", v.Because)
	}
	if f := parseFields(resp); f.cookie && f.public {
		w.warnOnce(r, status, "a response with a cookie is public: a shared cache may give the cookie to others")
	}
}

func (w *warner) warnOnce(r *http.Request, status int, message string, more ...any) {
	at := route{r.Pattern, status}
	if at.pattern == "" {
		at.pattern = r.URL.Path
	}
	w.mu.Lock()
	known := w.warned[at] || len(w.warned) >= maxRoutes
	if !known {
		w.warned[at] = true
	}
	w.mu.Unlock()
	if !known {
		w.log.Warn("cachectl: "+message, append([]any{"route", at.pattern, "status", status}, more...)...)
	}
}
