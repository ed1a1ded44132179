package wsupgrade

import (
	"net"
	"net/http"
	"net/url"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/header"
)

// Handler returns a handler that forwards upgrades to target, a URL with scheme http, https, ws or
// wss of which only scheme and host count: path and query are the client's. The target's port may
// be left out. Host is passed on. X-Forwarded-For, -Host and -Proto are set from the connection,
// not from what the client sent in them, and the other fields in which a proxy describes its client
// are removed: those that proxy.Outbound.Out lists.
//
// Every other request is refused with 426, so the handler can be mounted on any mux beside those of
// plain requests. For a target chosen per request, or other fields, use Forward or package proxy.
// Handler panics if target is nil.
func (f *Forwarder) Handler(target *url.URL) http.Handler {
	if target == nil {
		panic("wsupgrade: Handler: nil target")
	}
	scheme := target.Scheme
	switch scheme {
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	}
	host := target.Host
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header.SanitizeRequest(r, f.protocols); f.Protocol(r) == "" {
			f.refusePlain(w, r)
			return
		}
		_, err := f.Forward(w, r, outbound(r, scheme, host))
		switch e := errs.As(err); {
		case e == nil:
		case e.HeaderSent || e.Kind == culvert.ClientGone:
			panic(http.ErrAbortHandler)
		default:
			refuse(w, r, e)
		}
	})
}

// refusePlain refuses a request for none of the protocols. HTTP/2 has no upgrade that a 426 could
// name.
func (f *Forwarder) refusePlain(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 {
		refuse(w, r, &culvert.Error{Kind: culvert.BadRequest})
		return
	}
	if len(f.protocols) > 0 {
		w.Header().Set("Upgrade", f.protocols[0])
	}
	refuse(w, r, &culvert.Error{Kind: culvert.UpgradeRequired})
}

// outbound returns the request for the target.
func outbound(r *http.Request, scheme, host string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.URL.User = scheme, host, nil
	header.RemoveClaims(out.Header, false)
	if client, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		out.Header["X-Forwarded-For"] = []string{client}
	}
	out.Header["X-Forwarded-Host"] = []string{r.Host}
	out.Header["X-Forwarded-Proto"] = []string{"http"}
	if r.TLS != nil {
		out.Header["X-Forwarded-Proto"] = []string{"https"}
	}
	return out
}
