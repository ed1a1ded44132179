// Package filters composes handlers around a proxy: Filter, an immutable Chain,
// OnResponse with hooks for responses, and the filters that must know about proxying. A
// Filter is a func(http.Handler) http.Handler, so that any such middleware, chi's for
// instance, is one. Package filtertest checks that a filter preserves what proxying needs.
// Filters that need not know about proxying and are not a gateway's own (CORS, sessions,
// sign-on) are not here: take those of a well-maintained library into a Chain.
package filters
