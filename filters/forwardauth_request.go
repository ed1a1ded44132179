package filters

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/record"
)

// authorization is a response of ForwardAuth's handler that decides: a 2xx, or one for the client.
type authorization struct {
	status  int
	header  http.Header
	content []byte // nil: the status's text is sent in its place
}

func (a *authorization) allowed() bool { return a.status >= 200 && a.status <= 299 }

// authorize returns the response that decides about r, from the cache or by a subrequest.
func (f *forwardAuth) authorize(r *http.Request) (*authorization, *culvert.Error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), f.o.Timeout, context.DeadlineExceeded)
	defer cancel()
	sub := f.subrequest(ctx, r)
	if f.cache == nil {
		return f.ask(r, sub)
	}
	key, keep := f.cacheKey(r, sub)
	if keep {
		if a := f.cache.get(key); a != nil {
			return a, nil
		}
	}
	start := time.Now()
	a, err := f.ask(r, sub)
	if keep && err == nil && a.allowed() {
		if kept, d := a.keepable(f.o.ResponseFields), a.lifetime(f.o.CacheTime); kept != nil && d > 0 {
			f.cache.put(key, kept, start.Add(d))
		}
	}
	return a, err
}

// ask sends the subrequest to the auth service.
func (f *forwardAuth) ask(r, sub *http.Request) (*authorization, *culvert.Error) {
	ctx, result := record.WithNew(sub.Context())
	w := &authWriter{header: http.Header{}, o: &f.o}
	w.complete = serveAuth(f.o.To, w, sub.WithContext(ctx))
	own := errs.As(result.Err) // of a proxy that responds itself, with any status
	if r.Context().Err() != nil || !w.decides() || own != nil && !own.HeaderSent {
		return nil, authFailure(r, sub.Context().Err() != nil, &result.Result, w.status)
	}
	a := &authorization{status: w.status, header: w.sent}
	if a.allowed() {
		return a, nil
	}
	header.SanitizeResponse(a.status, a.header, "")
	for _, name := range append([]string{"Content-Length"}, f.o.ResponseFields...) {
		delete(a.header, name)
	}
	header.DeleteTrailers(a.header)
	if w.complete && !w.tooLong && len(w.content) > 0 {
		a.content = w.content
	}
	return a, nil
}

// serveAuth calls h, and reports whether it has returned. It has not if it has aborted its response.
func serveAuth(h http.Handler, w http.ResponseWriter, r *http.Request) (returned bool) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
	}()
	h.ServeHTTP(w, r)
	return true
}

// subrequest returns the request by which the handler decides about r.
func (f *forwardAuth) subrequest(ctx context.Context, r *http.Request) *http.Request {
	addrs, host, proto := client.Forwarded(r)
	method, target := requestedTarget(r)
	whole := proto + "://" + host + target
	if method == http.MethodConnect {
		whole = proto + "://" + target
	}
	h := make(http.Header, len(f.o.RequestFields)+8)
	for _, name := range f.o.RequestFields {
		if values := r.Header[name]; values != nil {
			h[name] = values[:len(values):len(values)]
		}
	}
	for _, stated := range [...]struct{ name, value string }{
		{"X-Forwarded-For", addrs}, {"X-Forwarded-Host", host}, {"X-Forwarded-Proto", proto},
		{"X-Forwarded-Method", method}, {"X-Original-Method", method},
		{"X-Forwarded-Uri", target}, {"X-Original-Uri", target}, {"X-Original-Url", whole},
	} {
		if stated.value != "" {
			h[stated.name] = []string{stated.value}
		}
	}
	if client.From(ctx) == nil { // so that a proxy keeps the fields: they are none of the client's
		ctx = client.With(ctx, &client.Info{Addr: client.Peer(r)})
	}
	u := r.URL
	if f.o.URI != "" {
		u, _ = parseTarget(f.o.URI) // which was checked
	}
	sub := &http.Request{Method: f.o.Method, URL: &url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: http.NoBody, Host: r.Host, RemoteAddr: r.RemoteAddr, TLS: r.TLS}
	if sub.URL.Path == "" {
		sub.URL.Path = "/" // of CONNECT
	}
	sub.RequestURI = sub.URL.RequestURI()
	return sub.WithContext(ctx)
}

// parseTarget parses the path and query of a request.
func parseTarget(s string) (*url.URL, error) {
	u, err := url.ParseRequestURI(s)
	if err == nil && (!strings.HasPrefix(s, "/") || !httpguts.ValidHeaderFieldValue(s) || strings.ContainsAny(s, " #")) {
		err = url.InvalidHostError(s)
	}
	return u, err
}

// requestedTarget returns the method of r, and its path and query. For CONNECT the latter are the host.
func requestedTarget(r *http.Request) (method, target string) {
	method = r.Method
	if method == http.MethodConnect {
		if r.Header[":protocol"] == nil {
			return method, r.Host
		}
		method = http.MethodGet // RFC 8441: the upgrade is a GET over HTTP/1
	}
	target = r.URL.RequestURI()
	if raw := r.URL.RawPath; raw != "" && httpguts.ValidHeaderFieldValue(raw) { // RequestURI would encode some paths anew
		if path, err := url.PathUnescape(raw); err == nil && path == r.URL.Path {
			target = raw
			if r.URL.ForceQuery || r.URL.RawQuery != "" {
				target += "?" + r.URL.RawQuery
			}
		}
	}
	return method, target
}

// isForwardedName reports whether the field describes the request to a handler of ForwardAuth, and is no claim.
func isForwardedName(name string) bool {
	return name == "X-Forwarded-Method" || name == "X-Original-Method"
}

// authWriter is the ResponseWriter of a subrequest. It keeps the content if it may be sent to the client.
type authWriter struct {
	o        *ForwardAuthOptions
	header   http.Header
	sent     http.Header // the header when it was written
	status   int         // 0: not written
	content  []byte
	tooLong  bool
	complete bool // the handler has returned
}

func (w *authWriter) Header() http.Header { return w.header }

func (w *authWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *authWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.Discards():
	case len(w.content)+len(p) > w.o.MaxBody:
		w.tooLong, w.content = true, nil
	default:
		w.content = append(w.content, p...)
	}
	return len(p), nil
}

// Discards implements response.Discards: a proxy need not wait for content that is not sent.
func (w *authWriter) Discards() bool {
	return w.status != 0 && (w.tooLong || w.status <= 299 || !w.decides() || w.o.Method == http.MethodHead)
}

// decides reports whether the response is one that ForwardAuth knows.
func (w *authWriter) decides() bool {
	switch w.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return w.o.Redirects && w.sent.Get("Location") != ""
	}
	return w.status >= 200 && w.status <= 299
}
