// Package maintenance serves a page in place of an application, which no cache keeps.
package maintenance

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
)

// Switch is a filter that responds to every request while it is on.
type Switch struct {
	// On reports whether the page is served. It may be changed at any time.
	On atomic.Bool
	// Page is the page, in HTML. It must not be changed once requests are served.
	Page string
}

// Filter is a culvert.Filter.
func (s *Switch) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.On.Load() {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, s.Page)
	})
}

// Chain returns a chain with the switch.
func Chain(s *Switch) (filters.Chain, error) {
	unsticky, err := cachectl.New(cachectl.ErrorPages()) // outside of the switch
	if err != nil {
		return filters.Chain{}, err
	}
	return filters.NewChain(unsticky, s.Filter), nil
}
