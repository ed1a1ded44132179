package filters

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/culvert-go/culvert/internal/head"
)

// Filter wraps a handler. It is an alias, so any middleware of that form is a
// Filter.
type Filter = func(http.Handler) http.Handler

// Chain is an immutable list of filters, the outermost first. The zero value is
// an empty chain. It is safe for concurrent use.
type Chain struct {
	filters []Filter
}

// NewChain returns the chain of filters, left is outermost. It panics if one of them
// is nil, as Append does.
func NewChain(filters ...Filter) Chain {
	checkFilters("NewChain", filters)
	return Chain{slices.Clone(filters)}
}

// Append returns a chain with more filters inside of c's. c stays as it is.
func (c Chain) Append(more ...Filter) Chain {
	checkFilters("Append", more)
	return Chain{slices.Concat(c.filters, more)}
}

// checkFilters panics where the mistake is made, not at the first request.
func checkFilters(function string, filters []Filter) {
	for i, f := range filters {
		if f == nil {
			panic(fmt.Sprintf("filters: %s: filter %d is nil", function, i))
		}
	}
}

// Then returns h with the chain around it; nil means http.NotFoundHandler.
//
// The handler cleans the head of each request, in place, before the first
// filter sees it: hop-by-hop fields and those that Connection lists are gone,
// and Connection and Upgrade hold the one protocol that is asked for or nothing.
// Without that a client could delete, by naming it in Connection, a field that a
// filter adds (CVE-2021-32813, CVE-2024-45410).
func (c Chain) Then(h http.Handler) http.Handler {
	if h == nil {
		h = http.NotFoundHandler()
	}
	for _, filter := range slices.Backward(c.filters) {
		h = filter(h)
	}
	return sanitizer{h}
}

// ThenFunc is Then for a function.
func (c Chain) ThenFunc(f http.HandlerFunc) http.Handler {
	if f == nil {
		return c.Then(nil)
	}
	return c.Then(f)
}

type sanitizer struct{ next http.Handler }

func (s sanitizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head.SanitizeRequest(r, nil)
	if r.Trailer == nil && r.ContentLength < 0 {
		// net/http sets trailers that were not announced on this very *Request;
		// a filter that copies the request would lose them. A map is shared.
		r.Trailer = make(http.Header)
	}
	s.next.ServeHTTP(w, r)
}
