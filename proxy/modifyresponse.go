package proxy

import "net/http"

// Response is the header of a target's final response, for Options.ModifyResponse.
type Response struct {
	// In is the client's request, Out the one that the target was sent. Neither must be
	// changed, and Out must not be kept.
	In, Out *http.Request
	// Status is the status of the response.
	Status int
	// Header is the header of the response, which may be changed. The fields that filters have
	// set, or set later, are not in it.
	Header http.Header

	instead http.Handler
}

// ServeInstead drops the response and has h respond to In in its place: with a page of the
// gateway's own, or with the file that the target names in nginx's X-Accel-Redirect. If h writes
// nothing, ServeHTTP returns with nothing written, so that the handler around it can respond. If
// the server has no WriteTimeout, each write of h has the time of Options.WriteTimeout, unless h
// sets a write deadline itself (http.ResponseController).
//
// The target counts as one that has responded, and keeps its place (upstream.Target.MaxConns)
// until h has returned: an h that forwards to the same group needs another place, and may wait
// for it (upstream.Options.QueueTimeout).
func (r *Response) ServeInstead(h http.Handler) { r.instead = h }

// Hide deletes header fields that are not for clients.
func (r *Response) Hide(names ...string) {
	for _, name := range names {
		r.Header.Del(name)
	}
}

// AddVia adds this gateway to the Via field of the response (RFC 9110 section 7.6.3).
func (r *Response) AddVia(pseudonym string) {
	r.Header["Via"] = appendVia(r.Header["Via"], 1, 1, pseudonym)
}
