package filters

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/localerror"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/response"
)

// ForwardAuthOptions configures ForwardAuth. Times are as package culvert says: 0 is the default, a
// negative bound is none.
type ForwardAuthOptions struct {
	// To decides about the requests: most often a proxy to an auth service. Required. It is called on the
	// goroutine of the request, with a subrequest of its own, whose context ends with the request's.
	To http.Handler
	// Method is the method of the subrequest; "" means GET. It never has a body.
	Method string
	// URI is the path and query of the subrequest, such as "/verify?realm=a"; "" means those of the request.
	URI string
	// RequestFields are the header fields of the request that the subrequest has, too. nil means Accept,
	// Authorization, Cookie, Origin, User-Agent and X-Requested-With. An empty list that is not nil means none. They may
	// be neither Host, a hop-by-hop field or one that describes content, nor one that proxy.Outbound.Out lists, which the
	// filter sets itself or a client may forge.
	RequestFields []string
	// ResponseFields are the header fields of a response that allows the request, such as "X-Auth-User", that are
	// copied onto the request. The same names are excluded as from RequestFields. Fields and trailers of these names
	// that the client has sent are always removed, also if they are written with underscores for hyphens, and if the
	// response has no such field.
	ResponseFields []string
	// Redirects sends responses of To with the status 301, 302, 303, 307 or 308 and a Location to the client, as they
	// are: a relative Location is relative to the client's URL.
	Redirects bool
	// SetCookies adds the Set-Cookie fields of a response that allows the request to the final response. Those of a
	// response that is sent to the client are sent in any case.
	SetCookies bool
	// Timeout bounds the time to To's response; 0 means 10 seconds.
	Timeout time.Duration
	// MaxBody is the length of the longest content of To's response that is sent to a client, in bytes; 0 means
	// 64 KiB. The status's text is sent in the place of a longer one, and of an empty one.
	MaxBody int
	// CacheTime is how long a response that allows a request allows the same request again; 0 means that each request
	// makes a subrequest. Security: credentials that have been revoked meanwhile are still accepted.
	CacheTime time.Duration
	// CacheSize is the maximum number of responses that are kept; 0 means 1024. Those that were used least recently make
	// room. Each one takes up to 8 KiB: one with longer ResponseFields is not kept.
	CacheSize int
	// CacheKey returns what distinguishes requests; "" means that the response to this request is not kept. It must be
	// safe for concurrent use. nil means all that the subrequest says: method, URI, host, the client's address, scheme and
	// certificates, and RequestFields.
	//
	// Security: two requests with the same key get the same response. A key must have all that To judges by: the
	// credentials, and also the method, host and path if what a client may do depends on them. Values that are put together
	// must be separated by what can't be a part of them.
	CacheKey func(*http.Request) string
}

// ForwardAuth returns a filter that has another handler decide about each request before it passes, upgrades and CONNECT
// included, as auth_request in nginx and ForwardAuth in Traefik do. To receives a subrequest without a body: with the
// Host, the RemoteAddr and the TLS state of the request, the header fields that RequestFields names, and these, which no
// client can forge:
//
//   - X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto, as proxy.Outbound.SetXForwarded sets them;
//   - X-Forwarded-Method and X-Original-Method, the method, which is GET for an upgrade over HTTP/2;
//   - X-Forwarded-Uri and X-Original-URI, the path and query that the next handler receives;
//   - X-Original-URL, scheme, host, path and query, for CONNECT scheme and host.
//
// A proxy.Proxy as To states the first three itself, by SetXForwarded, and keeps the others.
//
// If To's response is a 2xx, the request passes. A 401 or 403, and a redirect if Redirects is set, is sent to the client with
// its header and content, without ResponseFields, and with Cache-Control: no-store unless it has a Cache-Control; a
// gRPC call has the code UNAUTHENTICATED or PERMISSION_DENIED in its place. Anything
// else is a failure, and the request does not pass: another status, and a handler that returns without a response, have the
// status 502, or that of the culvert.Error of a proxy in To; one that takes too long has 504. Failures are recorded in the
// culvert.Result. A panic of To is passed on. A client that disconnects ends the subrequest; over HTTP/1 that is noticed if
// the request has no body.
//
// With CacheTime responses with a 2xx are kept, unless they have a Set-Cookie, or no-store or no-cache in Cache-Control;
// a smaller max-age shortens the time. What denies a request is never kept. Keys are kept as their SHA-256. Requests
// never share a subrequest that is under way.
//
// A request with several Authorization fields is refused with 400 if To gets that field: it might judge by another one than the target.
//
// Security: To judges by the path that the next handler receives, so no filter between may change it, and a target must not read
// it differently; see RefuseAmbiguous. Preflight requests of CORS have no credentials: respond to them outside of the filter.
//
// ForwardAuth returns an error if To is nil, a field is one of those that are excluded, or another option is out of range.
func ForwardAuth(o ForwardAuthOptions) (culvert.Filter, error) {
	f, err := newForwardAuth(o)
	if err != nil {
		return nil, fmt.Errorf("filters: ForwardAuth: %w", err)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(next, w, r) })
	}, nil
}

type forwardAuth struct {
	o     ForwardAuthOptions
	cache *authCache // nil: none
}

func newForwardAuth(o ForwardAuthOptions) (*forwardAuth, error) {
	if o.To == nil {
		return nil, errors.New("no To")
	}
	if o.MaxBody < 0 || o.CacheTime < 0 || o.CacheSize < 0 {
		return nil, errors.New("a negative MaxBody, CacheTime or CacheSize")
	}
	if o.Method == "" {
		o.Method = http.MethodGet
	}
	if !httpguts.ValidHeaderFieldName(o.Method) || o.Method == http.MethodConnect { // a method is a token, too
		return nil, fmt.Errorf("invalid Method %q", o.Method)
	}
	if o.URI != "" {
		if _, err := parseTarget(o.URI); err != nil {
			return nil, fmt.Errorf("invalid URI %q", o.URI)
		}
	}
	if o.RequestFields == nil {
		o.RequestFields = []string{"Accept", "Authorization", "Cookie", "Origin", "User-Agent", "X-Requested-With"}
	}
	var err error
	if o.RequestFields, err = compileNames(o.RequestFields); err != nil {
		return nil, err
	}
	if o.ResponseFields, err = compileNames(o.ResponseFields); err != nil {
		return nil, err
	}
	o.Timeout = bound.OrDefault(o.Timeout, 10*time.Second)
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 10
	}
	f := &forwardAuth{o: o}
	if o.CacheTime > 0 {
		f.cache = newAuthCache(o.CacheSize)
	}
	return f, nil
}

// compileNames returns the canonical names of fields that are copied between a request and a subrequest.
func compileNames(names []string) (compiled []string, err error) {
	for _, name := range names {
		if err := checkField(name); err != nil {
			return nil, err
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if header.IsClaim(name) || isForwardedName(name) {
			return nil, fmt.Errorf("field %s is set by proxies", name)
		}
		if strings.HasPrefix(name, "Content-") {
			return nil, fmt.Errorf("field %s describes content", name)
		}
		compiled = append(compiled, name)
	}
	return compiled, nil
}

func (f *forwardAuth) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if len(r.Header["Authorization"]) > 1 && slices.Contains(f.o.RequestFields, "Authorization") {
		refuse(w, r, http.StatusBadRequest)
		return
	}
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned)
	a, err := f.authorize(r)
	if err != nil {
		f.fail(w, r, err)
		returned = true
		return
	}
	returned = true
	if !a.allowed() {
		f.deny(w, r, a)
		return
	}
	f.pass(next, w, r, a)
}

// fail responds to a request about which To has not decided.
func (f *forwardAuth) fail(w http.ResponseWriter, r *http.Request, err *culvert.Error) {
	if known := record.From(r.Context()); known != nil && known.Err == nil {
		known.Err = err
	}
	if err.Kind == culvert.ClientGone {
		panic(http.ErrAbortHandler)
	}
	refuseError(w, r, err)
}

// deny sends To's response to the client.
func (f *forwardAuth) deny(w http.ResponseWriter, r *http.Request, a *authorization) {
	if localerror.IsGRPC(r) {
		if a.status < 400 {
			a.status = http.StatusUnauthorized // a redirect to a page on which a user can log in
		}
		refuse(w, r, a.status)
		return
	}
	if a.content == nil {
		header.DeleteDigests(a.header)
		for _, name := range contentFields {
			delete(a.header, name)
		}
	}
	h := w.Header()
	for name, values := range a.header {
		if name == "Set-Cookie" || name == "Vary" {
			values = append(h[name][:len(h[name]):len(h[name])], values...)
		}
		h[name] = values
	}
	if h["Cache-Control"] == nil {
		h["Cache-Control"] = []string{"no-store"} // a 301 and a 308 would be kept without it
	}
	if a.content == nil {
		refuse(w, r, a.status)
		return
	}
	clientbody.LeaveUnread(w, r)
	bounded := deadline.BoundOwn(w, r)
	bounded.WriteHeader(a.status)
	_, _ = bounded.Write(a.content)
	bounded.Leave()
}

// pass calls the next handler with the fields that To has sent, in place of the client's.
func (f *forwardAuth) pass(next http.Handler, w http.ResponseWriter, r *http.Request, a *authorization) {
	if names := f.o.ResponseFields; len(names) > 0 {
		r = header.CloneRequest(r.Context(), r)
		header.SanitizeRequest(r, nil) // without a Chain the client's Connection could name a field that is set here
		for _, name := range names {
			header.RemoveSpellings(r.Header, name)
		}
		for _, name := range names {
			if values := a.header[name]; values != nil {
				r.Header[name] = slices.Clone(values) // a cached response has them again
			}
		}
		r.Body = header.WithoutTrailers(r, r.Body, names)
	}
	cookies := a.header["Set-Cookie"]
	if !f.o.SetCookies || cookies == nil {
		next.ServeHTTP(w, r)
		return
	}
	response.Serve(next, w, r, &response.Hooks{Header: func(_ *http.Request, _ int, h http.Header) {
		h["Set-Cookie"] = append(h["Set-Cookie"][:len(h["Set-Cookie"]):len(h["Set-Cookie"])], cookies...)
	}})
}

// errNoResponse is that of a handler that has returned, or ended by http.ErrAbortHandler, without a response.
var errNoResponse = errors.New("ForwardAuth's handler has not responded")

// authFailure returns the error of r's subrequest, which has the Result of and the status of its response, 0 for none.
func authFailure(r *http.Request, timedOut bool, of *culvert.Result, status int) *culvert.Error {
	if r.Context().Err() != nil {
		return &culvert.Error{Kind: errs.KindOfContext(r.Context()), Err: errNoResponse}
	}
	if e := errs.As(of.Err); e != nil && !e.ClientSide() {
		e := *e
		e.BytesSent, e.HeaderSent, e.Err = false, false, fmt.Errorf("ForwardAuth: %w", of.Err)
		return &e
	}
	switch {
	case status == 0 && timedOut:
		return &culvert.Error{Kind: culvert.Timeout, Err: errNoResponse}
	case status == 0:
		return &culvert.Error{Kind: culvert.HeaderInvalid, Err: errNoResponse}
	}
	return &culvert.Error{Kind: culvert.HeaderInvalid, Err: fmt.Errorf("ForwardAuth's handler responded with status %d", status)}
}
