package wsupgrade

import (
	"net/http"
	"net/url"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
)

// Handler forwards upgrades to target, a URL with scheme http, https, ws or wss
// of which only scheme and host count: path and query are the client's. It
// refuses every other request with 426, so it can be mounted on any mux
// beside handlers that answer those.
func (f *Forwarder) Handler(target *url.URL) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if head.SanitizeRequest(r, f.protocols) == "" {
			Refuse(w, &fault.Error{Kind: fault.UpgradeRequired})
			return
		}
		out := r.Clone(r.Context())
		out.URL = &url.URL{Scheme: target.Scheme, Host: target.Host, Path: r.URL.Path, RawPath: r.URL.RawPath,
			RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
		_, err := f.Forward(w, r, out)
		switch e := fault.As(err); {
		case e == nil:
		case e.HeadSent || e.Kind == fault.ClientGone:
			panic(http.ErrAbortHandler)
		default:
			Refuse(w, e)
		}
	})
}
