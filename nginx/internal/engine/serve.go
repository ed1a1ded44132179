package engine

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// handler returns the handler of a socket. Error pages without freshness become uncacheable
// outside of everything that the configuration sets, so that the configuration wins.
func (e *Engine) handler(k *socket) http.Handler {
	hooks := &response.Hooks{Status: knownStatus, Header: finalHeader, Body: responseWriter, End: finishResponse}
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		x.w = w
		x.serve()
	})
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { response.Serve(inner, w, r, hooks) })
	return proxyCredentials{&entrance{engine: e, socket: k, next: e.errorPages(outer)}}
}

// entrance begins the exchange of each request to a socket. It cleans the request's header as filters.Chain does, and keeps
// Connection of it for $http_connection.
type entrance struct {
	engine *Engine
	socket *socket
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (h *entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	connection := r.Header["Connection"]
	httpheader.Receive(r)
	x := h.engine.enter(h.socket, w, r)
	x.Connection = connection
	defer x.releaseBody() // which logs show
	counts := h.engine.shared.counts
	counts.startRequest(x.Conn.Net())
	defer counts.finishRequest(x.Conn.Net())
	defer x.leaveConnections()
	x.observeStart()
	h.next.ServeHTTP(w, x.HTTP)
	x.awaitSent(w)
}

func init() {
	// All that a configuration leads to is the engine's own, and the functions that proxies and filters call are: none keeps
	// a request or its writer. What a proxy starts beside its handler holds them (package proxy). What is made of a request
	// for another one, which may go on, does so here (branch). All that waits does so for the end of the request's context,
	// and logs are written from copies.
	clientside.RegisterReturner(func(*entrance) bool { return true })
}

// serve serves x: a status without a response leads to the error pages, until one has sent a
// response.
func (x *exchange) serve() {
	status := x.received()
	if status == 0 {
		status = x.process(x.w)
	}
	for status != 0 {
		status = x.special(status)
	}
}

// received examines a new request.
func (x *exchange) received() int {
	if x.refused != 0 {
		if x.HTTP.ProtoMajor == 1 { // HTTP/2 ends only the stream
			x.w.Header().Set("Connection", "close")
		}
		if x.HTTP.TLS != nil && serverBySNI(x) == x.server { // another server's rules are not those of the connection
			_ = x.checkClient() // its error is $ssl_client_verify's
		}
		x.logRefusal()
		return x.refused
	}
	if x.HTTP.Method == http.MethodConnect { // what follows is for the tunnel, and no request, if there is none
		x.w.Header().Set("Connection", "close")
	}
	for _, step := range x.level.phases.postRead {
		if status := step(x); status != 0 {
			return status
		}
	}
	return 0
}

// process runs the server's own phase, then chooses the location. Like all steps it returns 0 if
// it has sent a response, and else the status of an error page.
func (x *exchange) process(w http.ResponseWriter) int {
	x.level = x.server.level
	if status, _, done := x.rewritePhase(w); done {
		return status
	}
	return x.locate(w)
}

// locate chooses the location and serves the request in it.
func (x *exchange) locate(w http.ResponseWriter) int {
	m, ok, err := x.server.level.locations.Find(x.URI)
	if err != nil {
		x.logPattern(err)
		return http.StatusInternalServerError
	}
	if !ok {
		return x.run(w, x.server.level)
	}
	for _, c := range m.Around {
		x.Capture(c.Groups, c.Regexp.Names())
	}
	if m.Regexp != nil {
		x.Capture(m.Groups, m.Regexp.Names())
	}
	if m.Redirect {
		x.level = m.To
		return redirectTo(x, w, route.Escape(x.URI)+"/")
	}
	return x.run(w, m.To)
}

// run serves the request in the given level.
func (x *exchange) run(w http.ResponseWriter, l *level) int {
	l = exceptFor(l, x.HTTP.Method)
	x.level = l
	for _, step := range x.level.phases.located {
		if status := step(x, w); status != 0 {
			return status
		}
	}
	if l != x.server.level { // else there is no location, and the server's own phase is over
		switch status, changed, done := x.rewritePhase(w); {
		case done:
			return status
		case changed:
			if x.redirects++; x.redirects > maxRedirects {
				x.logError("rewrite or internal redirection cycle while processing \"" + x.URI + "\"")
				return http.StatusInternalServerError
			}
			return x.locate(w)
		}
	}
	for _, step := range x.level.phases.preaccess {
		if status := step(x); status != 0 {
			return status
		}
	}
	if status := x.accessPhase(w); status != 0 {
		x.delayUnauthorized(status)
		return status
	}
	if status := x.failedPattern(); status != 0 {
		return status
	}
	return x.filtered(x.level.phases.body, w, (*exchange).contentPhase)
}

// rewritePhase calls the modules until one has an effect.
func (x *exchange) rewritePhase(w http.ResponseWriter) (status int, changed, done bool) {
	for _, step := range x.level.phases.rewrite {
		if status, changed, done = step(x, w); changed || done {
			return status, changed, done
		}
	}
	return 0, false, false
}

// accessPhase runs the access phase and returns 0 if the request is allowed
// (ngx_http_core_access_phase).
func (x *exchange) accessPhase(w http.ResponseWriter) int {
	if x.main != nil {
		return 0
	}
	code, satisfyAny := 0, accessSlot.of(x.level).any
	for _, check := range x.level.phases.access {
		v, status := check(x, w)
		switch {
		case v == granted && satisfyAny:
			w.Header().Del("Www-Authenticate")
			w.Header().Del("Proxy-Authenticate")
			return 0
		case v != refused:
		case !satisfyAny, status != http.StatusForbidden && !lacksPassword(status):
			return status
		case !lacksPassword(code):
			code = status
		}
	}
	return code
}

// contentPhase serves the request inside the middleware of its location. A slice of a response is requested inside that of the
// whole.
func (x *exchange) contentPhase(w http.ResponseWriter) int {
	if made := middlewareSlot.of(x.level).made; made != nil && (x.main == nil || x.slices == nil) {
		return x.throughMiddleware(made, w)
	}
	return x.locationContent(w)
}

// locationContent serves the request inside the filters of its response.
func (x *exchange) locationContent(w http.ResponseWriter) int {
	for _, serve := range x.level.phases.precontent {
		if status, done := serve(x, w); done {
			return status
		}
	}
	return x.filtered(x.level.phases.around, w, (*exchange).content)
}

// content calls the modules until one serves the request. The last one serves files, and leaves
// nothing.
func (x *exchange) content(w http.ResponseWriter) int {
	if status := x.failedRoot(); status != 0 {
		return status
	}
	for _, serve := range x.level.phases.content {
		if status, done := serve(x, w); done {
			return status
		}
	}
	return http.StatusNotFound
}

// redirect continues with another path inside the server. Captures are kept.
func (x *exchange) redirect(w http.ResponseWriter, uri, args string) int {
	if x.redirects++; x.redirects > maxRedirects {
		x.logError("rewrite or internal redirection cycle while internally redirecting to \"" + uri + "\"")
		return http.StatusInternalServerError
	}
	x.URI, x.Args, x.Internal, x.uriChanged = uri, args, true, true
	x.uriRewritten = false
	x.proxy.host, x.proxy.port = "", ""
	x.redirected()
	return x.process(w)
}

// redirected drops what nginx's modules do not keep over an internal redirect.
func (x *exchange) redirected() {
	x.Request.Redirected()
	x.behindAlias = false
	x.link.until = ""
	x.gzip.counted = false
}

// redirectNamed continues in a location that starts with "@".
func (x *exchange) redirectNamed(w http.ResponseWriter, name string) int {
	if x.URI == "" { // the request line is malformed
		x.logError("empty URI in redirect to named location \"" + name + "\"")
		return http.StatusInternalServerError
	}
	l, ok := x.server.named[name]
	if x.redirects++; x.redirects > maxRedirects || !ok {
		x.logError("could not find named location \"" + name + "\"")
		return http.StatusInternalServerError
	}
	x.Internal = true
	x.redirected()
	return x.run(w, l)
}

// finalHeader is called when the final header is about to be written.
func finalHeader(r *http.Request, status int, h http.Header) {
	x := exchangeOf(r.Context())
	x.Status = status
	x.Header = h
	if status == http.StatusNotModified && !x.proxy.responded {
		delete(h, "Content-Type") // nginx sends that of an upstream's alone
	}
	for _, change := range x.level.phases.header {
		change(x, h)
	}
	if x.HTTP.ProtoMajor == 1 && x.main == nil {
		x.formatHeader(h)
	}
	x.breakOffUnknown()
}

// responseWriter is called when the body is about to be written.
func responseWriter(r *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	x := exchangeOf(r.Context())
	if x.withheld {
		return response.Discard
	}
	transform := x.level.phases.write(x, w)
	x.breakOffUnknown()
	return transform
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
		if x.unanswered {
			x.Status = x.errStatus
		}
	}
	x.observeEnd(s)
	x.Complete = !s.Aborted && s.Status != 0 && x.HTTP.Context().Err() == nil
	for _, log := range x.level.phases.log {
		log(x)
	}
}
