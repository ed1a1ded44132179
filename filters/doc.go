// Package filters composes handlers around a proxy: Filter, an immutable Chain, a
// hook on answers, and the filters that must know about proxying. A Filter is a
// func(http.Handler) http.Handler, so chi's and anyone's middleware fit as they
// are; package filtertest tells whether one keeps what proxying needs. What needs
// to know nothing of proxying (CORS, rate limits, sessions, sign-on) is not here:
// well-kept libraries for it fit into a Chain.
package filters
