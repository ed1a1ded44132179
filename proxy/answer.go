package proxy

import "net/http"

// Answer is the head of a target's final answer, as Options.RewriteAnswer sees
// it.
type Answer struct {
	// In is the client's request, Out the one that the target was sent. Neither
	// must be changed, and Out not be kept.
	In, Out *http.Request
	// Status is the answer's status.
	Status int
	// Header are the answer's fields, which may be changed. The fields that
	// filters have set, or set later, are not among them.
	Header http.Header

	instead http.Handler
}

// Replace drops the answer, head and body, and lets h answer In in its place:
// with a page of the gateway's own, or with the file that the target names in
// nginx's X-Accel-Redirect. Where h writes nothing ServeHTTP returns with nothing
// written, so that the handler around can respond. Where the server has no WriteTimeout, each
// write of h has the time of Options.WriteTimeout, unless h sets a write deadline itself
// (http.ResponseController).
// The target counts as one that has responded, and keeps its place (upstream.Target.MaxConns) until h has returned: an h that
// forwards to the same group needs another one, and may wait for it (upstream.Options.QueueTimeout).
func (a *Answer) Replace(h http.Handler) { a.instead = h }

// Hide removes fields that are not for clients.
func (a *Answer) Hide(names ...string) {
	for _, name := range names {
		a.Header.Del(name)
	}
}

// AddVia adds this gateway to the answer's Via field (RFC 9110 section 7.6.3).
func (a *Answer) AddVia(pseudonym string) {
	a.Header["Via"] = appendVia(a.Header["Via"], 1, 1, pseudonym)
}
