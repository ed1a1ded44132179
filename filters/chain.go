package filters

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/header"
)

// Chain is an immutable list of filters, the outermost first. The zero value is
// an empty chain. It is safe for concurrent use by multiple goroutines.
type Chain struct {
	filters []culvert.Filter
}

// NewChain returns a chain of filters. The first is the outermost. It panics if one of
// them is nil.
func NewChain(filters ...culvert.Filter) Chain {
	checkFilters("NewChain", filters)
	return Chain{slices.Clone(filters)}
}

// Append returns a chain of c's filters and more, which are inside of them. It does not
// change c. It panics if one of the filters is nil.
func (c Chain) Append(more ...culvert.Filter) Chain {
	checkFilters("Append", more)
	return Chain{slices.Concat(c.filters, more)}
}

// checkFilters panics if a filter is nil: where the mistake is made, and not at the first request.
func checkFilters(function string, filters []culvert.Filter) {
	for i, f := range filters {
		if f == nil {
			panic(fmt.Sprintf("filters: %s: filter %d is nil", function, i))
		}
	}
}

// Then returns h with the chain around it. If h is nil, it is http.NotFoundHandler().
//
// The handler that it returns cleans the header of each request, in place, before the
// first filter is called. It removes the hop-by-hop fields and those that Connection
// names. The rest of Connection and Upgrade names the one protocol that the client
// requests. Otherwise a client could delete a field that a filter adds by naming it in
// Connection (CVE-2021-32813, CVE-2024-45410).
func (c Chain) Then(h http.Handler) http.Handler {
	if h == nil {
		h = http.NotFoundHandler()
	}
	for _, filter := range slices.Backward(c.filters) {
		h = filter(h)
	}
	return sanitizer{h}
}

// ThenFunc is Then for a function. If f is nil, it is http.NotFound.
func (c Chain) ThenFunc(f http.HandlerFunc) http.Handler {
	if f == nil {
		return c.Then(nil)
	}
	return c.Then(f)
}

func init() {
	clientside.RegisterReturner(func(s sanitizer) bool { return clientside.Returns(s.next) })
}

type sanitizer struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (s sanitizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header.Receive(r)
	s.next.ServeHTTP(w, r)
}
