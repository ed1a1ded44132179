package cachectl

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
)

// maxRoutes bounds the routes that Warn remembers. After that many it is silent.
const maxRoutes = 1000

// Warn returns a filter that tells log of error pages that would stick (see Sticks), and of
// answers with a Set-Cookie that are public: once for each route and status, where the route
// is the pattern of the ServeMux that matched, or else the path. It changes nothing; put it
// outside of New's filter to see what is left.
func Warn(log *slog.Logger) (func(http.Handler) http.Handler, error) {
	if log == nil {
		return nil, errors.New("cachectl: Warn without a log")
	}
	w := &warner{log: log, told: map[route]bool{}}
	return atHead(w.look), nil
}

type route struct {
	pattern string
	status  int
}

type warner struct {
	log *slog.Logger

	mu   sync.Mutex
	told map[route]bool
}

func (w *warner) look(answer *Response) {
	r, status := answer.Request, answer.Status
	if v, sticks := Sticks(answer); sticks {
		w.tell(r, status, "an error page sticks: nothing says for how long it may be kept", "cache", v.Cache, "because", v.Because)
	}
	if a := read(answer); a.cookie && a.public {
		w.tell(r, status, "an answer with a cookie is public: a shared cache may give the cookie to others")
	}
}

func (w *warner) tell(r *http.Request, status int, message string, more ...any) {
	at := route{r.Pattern, status}
	if at.pattern == "" {
		at.pattern = r.URL.Path
	}
	w.mu.Lock()
	known := w.told[at] || len(w.told) >= maxRoutes
	if !known {
		w.told[at] = true
	}
	w.mu.Unlock()
	if !known {
		w.log.Warn("cachectl: "+message, append([]any{"route", at.pattern, "status", status}, more...)...)
	}
}
