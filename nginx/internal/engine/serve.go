package engine

import (
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// handler returns the handler of a socket. Error pages without freshness become uncacheable
// outside of everything that the configuration sets, so that the configuration wins.
func (e *Engine) handler(k *socket) http.Handler {
	chain := filters.NewChain(
		func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				x := e.enter(k, w, r)
				e.shared.counts.startRequest(x.Conn.Net())
				defer e.shared.counts.finishRequest(x.Conn.Net())
				next.ServeHTTP(w, x.HTTP)
			})
		},
		e.errorPages,
		filters.OnResponse(filters.ResponseHooks{Header: finalHeader, Body: limitedBody, End: finishResponse}),
	)
	return chain.ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		x.w = w
		x.serve()
	})
}

// serve serves x: a status without a response leads to the error pages, until one has sent a
// response.
func (x *exchange) serve() {
	x.removeInvalidFields()
	status := http.StatusBadRequest
	emptyHost := x.HTTP.Host == "" && x.HTTP.ProtoAtLeast(1, 1)
	if !emptyHost && x.split() {
		if status = x.verifyClient(); status == 0 {
			status = x.process(x.w)
		}
	}
	for status != 0 {
		status = x.special(status)
	}
}

// process runs the server's own phase, then chooses the location. Like all steps it returns 0 if
// it has sent a response, and else the status of an error page.
func (x *exchange) process(w http.ResponseWriter) int {
	x.level = x.server.level
	if status, _, done := x.runScript(w, x.level.script); done {
		return status
	}
	return x.locate(w)
}

// locate chooses the location and serves the request in it.
func (x *exchange) locate(w http.ResponseWriter) int {
	m, ok := x.server.locations.Find(x.URI)
	if !ok {
		return x.run(w, x.server.level)
	}
	for _, c := range m.Around {
		x.Capture(c.Groups, c.Regexp.SubexpNames())
	}
	if m.Regexp != nil {
		x.Capture(m.Groups, m.Regexp.SubexpNames())
	}
	if m.Redirect {
		x.level = m.To
		return x.redirectTo(w, route.Escape(x.URI)+"/")
	}
	return x.run(w, m.To)
}

// run serves the request in the given level.
func (x *exchange) run(w http.ResponseWriter, l *level) int {
	l = l.exceptFor(x.HTTP.Method)
	x.level = l
	if l.internal && !x.Internal {
		return http.StatusNotFound
	}
	if status := x.limitBody(w); status != 0 {
		return status
	}
	script := l.script
	if l == x.server.level {
		script = nil // it has run: there is no location
	}
	switch status, changed, done := x.runScript(w, script); {
	case done:
		return status
	case changed:
		if x.redirects++; x.redirects > maxRedirects {
			x.logError("rewrite or internal redirection cycle while processing \"" + x.URI + "\"")
			return http.StatusInternalServerError
		}
		return x.locate(w)
	}
	x.setRealIP(&x.level.realIP)
	if x.main == nil {
		for _, step := range []func() int{x.limitRequests, x.limitConnections} {
			if status := step(); status != 0 {
				return status
			}
		}
		if status := x.accessPhase(w); status != 0 {
			return status
		}
	}
	return x.filtered(w, (*exchange).mirrored)
}

// content serves a file or an upstream's response.
func (x *exchange) content(w http.ResponseWriter) int {
	l := x.level
	if l.tries != nil {
		if status, done := l.tries.serve(x, w); done {
			return status
		}
	}
	if l.pass != nil {
		return l.pass.serve(x, w)
	}
	if l.status {
		return x.stubStatus(w)
	}
	return x.static(w)
}

// redirect continues with another path inside the server. Captures are kept.
func (x *exchange) redirect(w http.ResponseWriter, uri, args string) int {
	if x.redirects++; x.redirects > maxRedirects {
		x.logError("rewrite or internal redirection cycle while internally redirecting to \"" + uri + "\"")
		return http.StatusInternalServerError
	}
	x.URI, x.Args, x.Internal, x.uriChanged = uri, args, true, true
	x.uriRewritten = false
	x.ProxyHost, x.ProxyPort = "", ""
	x.Redirected()
	return x.process(w)
}

// redirectNamed continues in a location that starts with "@".
func (x *exchange) redirectNamed(w http.ResponseWriter, name string) int {
	l, ok := x.server.named[name]
	if x.redirects++; x.redirects > maxRedirects || !ok {
		x.logError("could not find named location \"" + name + "\"")
		return http.StatusInternalServerError
	}
	x.Internal = true
	x.Redirected()
	return x.run(w, l)
}

// finalHeader is called when the final header is about to be written.
func finalHeader(r *http.Request, status int, h http.Header) {
	x := exchangeOf(r.Context())
	x.Status = status
	x.Header = h
	x.level.hideHeaders(x, h)
	if h["Server"] == nil {
		h.Set("Server", "culvert") // else the upstream's, which proxy_pass_header lets through
	}
	if status != http.StatusSwitchingProtocols {
		x.level.applyExpires(x, h)
		x.level.applyCharset(x, h)
		x.level.applyUserid(x, h)
		x.level.announceTrailers(x, h)
	}
	x.level.applyHeaders(x, h)
	x.level.applyKeepalive(x, h)
}

// finishResponse is called when the response is complete or has failed.
func finishResponse(r *http.Request, s culvert.ResponseStats) {
	x := exchangeOf(r.Context())
	x.Status, x.BodyBytes = s.Status, s.Bytes
	if s.Hijacked && x.Upstream != nil {
		x.BodyBytes = x.Upstream.BytesOut
	}
	if s.Status == 0 {
		x.Status = 499 // the client disconnected
		if x.errStatus == 444 {
			x.Status = 444
		}
	}
	x.Complete = !s.Aborted && s.Status != 0 && x.HTTP.Context().Err() == nil
	if !x.compressed() {
		x.GzipIn = 0
	}
	x.level.sendTrailers(x, x.Header)
	for _, f := range x.atEnd {
		f()
	}
	x.level.log(x)
}
