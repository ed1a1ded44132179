// Package filters composes handlers around a proxy: Filter, an immutable Chain,
// a hook on answers, access logs. A Filter is a func(http.Handler) http.Handler,
// so chi's and anyone's middleware fit as they are; package filtertest tells
// whether one keeps what proxying needs.
package filters
