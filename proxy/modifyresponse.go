package proxy

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/internal/header"
)

// Response is the header of a target's response, for Options.ModifyResponse.
type Response struct {
	// In is the client's request, Out the one that the target was sent. Neither must be
	// changed, and Out must not be kept.
	In, Out *http.Request
	// Status is the status of the response, which may be changed. Content is relayed only if the
	// target's status and the new one both have some: to or from 204, 205 and 304, or from 101,
	// the response has none, no Content-Length and no trailers. The new status must be from 200 to
	// 999, and not of class 2 for an extended CONNECT (RFC 8441), in which that would open a tunnel.
	// Otherwise the request fails with the kind Internal (500), and nothing of the response is
	// sent. Fields that belong to a status, Content-Range or WWW-Authenticate for instance, are
	// left to ModifyResponse. The health of the target, Retry.Statuses and culvert.Attempt go by
	// the target's own status.
	//
	// A 101 that is left opens the tunnel. Any other status, and ServeInstead, closes the
	// connection to the target.
	Status int
	// Header is the header of the response, which may be changed. The fields that filters have
	// set, or set later, are not in it. Of a 101 Connection, Upgrade and the Sec-WebSocket fields
	// are sent as the target has sent them: both ends go by them.
	Header http.Header
	// FieldNames are the names of Header's fields as the target has spelt them, one for each line, in its order, and behind them
	// those of announced trailers. Reason is that of its status line. Both are set if Options.KeepFieldNames is. Over HTTP/2 each name is there once, in the order of the alphabet, and
	// Reason is "". They must not be changed.
	FieldNames []string
	Reason     string

	instead http.Handler
	failure error
}

// ServeInstead drops the response and has h respond to In in its place: with a page of the
// gateway's own, or with the file that the target names in nginx's X-Accel-Redirect. If h writes
// nothing, ServeHTTP returns with nothing written, so that the handler around it can respond. If
// the server has no WriteTimeout, each write of h has the time of Options.WriteTimeout, unless h
// sets a write deadline itself (http.ResponseController).
//
// If In has a body, h can read it only if Options.RequestBuffer is set, and gets all of it. Otherwise
// each read fails: the body was the target's.
//
// The target counts as one that has responded, and keeps its place (upstream.Target.MaxConns)
// until h has returned: an h that forwards to the same group needs another place, and may wait
// for it (upstream.Options.QueueTimeout).
func (r *Response) ServeInstead(h http.Handler) { r.instead = h }

// Fail drops the response and has the exchange fail with err, which ErrorHandler and OnError get as a *culvert.Error of Kind
// Internal (500). If err is, or wraps, a *culvert.Error that is the client's fault, NoTarget or Busy, its Kind and RetryAfter are
// used: Forbidden (403), for instance. The target counts as one that has responded, and the request is not retried. ServeInstead has no
// effect then. nil undoes an earlier call.
func (r *Response) Fail(err error) { r.failure = err }

// AddVia adds this gateway to the Via field of the response (RFC 9110 section 7.6.3).
func (r *Response) AddVia(pseudonym string) {
	r.Header["Via"] = appendVia(r.Header["Via"], 1, 1, pseudonym)
}

// modify calls Options.ModifyResponse, and returns the handler that serves in place of resp, or the failure of the exchange.
func (f *forwarding) modify(resp *http.Response) (instead http.Handler, err error) {
	a := Response{In: f.out.In, Out: f.out.Out, Status: resp.StatusCode, Header: resp.Header,
		FieldNames: f.names.Received.Names}
	_, a.Reason, _ = strings.Cut(f.names.Received.Status, " ")
	f.p.o.ModifyResponse(&a)
	if a.Status != resp.StatusCode {
		f.names.Received.Status = ""
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	header.RemoveMisspelt(a.Header)
	f.replaced = a.instead != nil || a.failure != nil || a.Status != resp.StatusCode
	resp.StatusCode = a.Status
	resp.Header = a.Header
	switch {
	case a.failure != nil:
		f.hookFailed = true
		return nil, hookFailure(a.failure, true)
	case a.instead == nil || !f.body.Exists():
		return a.instead, nil
	}
	return f.withBodyAgain(a.instead), nil
}

// withBodyAgain returns a handler that calls h with a body of its own: that of the client is the target's.
func (f *forwarding) withBodyAgain(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		body := f.body.Again()
		defer body.Close()
		again := *in
		again.Body = body
		h.ServeHTTP(w, &again)
	})
}

// addCookie adds the lease's cookie, if it gives one, to the response. remove removes it again.
func (f *forwarding) addCookie() (remove func()) {
	cookie := f.lease.Cookie(f.out.In)
	if cookie == nil {
		return func() {}
	}
	h := f.client.Writer().Header()
	before, had := h["Set-Cookie"]
	h["Set-Cookie"] = append(before[:len(before):len(before)], cookie.String())
	return func() {
		if h["Set-Cookie"] = before; !had {
			delete(h, "Set-Cookie")
		}
	}
}
