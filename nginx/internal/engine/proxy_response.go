package engine

import (
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/proxy"
)

// diversion is what is served instead of an upstream's response.
type diversion struct {
	status int    // of an error page
	uri    string // or where X-Accel-Redirect leads
}

// ignorable are the fields of proxy_ignore_headers. Those about a cache have no effect.
var ignorable = map[string]bool{"X-Accel-Redirect": true, "X-Accel-Expires": true, "X-Accel-Limit-Rate": true,
	"X-Accel-Buffering": true, "X-Accel-Charset": true, "Expires": true, "Cache-Control": true, "Set-Cookie": true, "Vary": true}

// ignoreHeaders compiles "proxy_ignore_headers field ...".
func (f *family) ignoreHeaders(_ *compiler, l *level, d *conf.Directive) error {
	ignored := map[string]bool{}
	for _, name := range d.Args {
		canonical := http.CanonicalHeaderKey(name)
		if !ignorable[canonical] {
			return d.Errorf("invalid value \"%s\"", name)
		}
		ignored[canonical] = true
	}
	f.slot.edit(l).ignored = ignored
	return nil
}

// modifyResponse examines an upstream's response before the client receives it.
func (p *passRule) modifyResponse(a *proxy.Response) {
	x := exchangeOf(a.In.Context())
	x.UpstreamHeader = a.Header
	x.proxy.names, x.proxy.reason = a.FieldNames, a.Reason
	if why := framedTwice(a.FieldNames); why != "" {
		x.logError(why + " while reading response header from upstream")
		divert(x, a, diversion{status: http.StatusBadGateway})
		return
	}
	ignoreRepeated(a.Header)
	s := x.passSettings()
	if s.ignored["X-Accel-Buffering"] {
		a.Header.Del("X-Accel-Buffering")
	}
	if s.intercept && a.Status >= 300 && errorPageSlot.of(x.level).pageFor(a.Status) != nil { // before X-Accel-Redirect, as in nginx
		divert(x, a, diversion{status: a.Status})
		return
	}
	if !s.ignored["X-Accel-Limit-Rate"] {
		takeLimitRate(x, a.Header.Get("X-Accel-Limit-Rate"))
	}
	if uri := a.Header.Get("X-Accel-Redirect"); uri != "" && !s.ignored["X-Accel-Redirect"] {
		divert(x, a, diversion{uri: uri})
		return
	}
	if p.family.typed {
		setContentType(x, a.Header)
	}
	if a.Header["Content-Type"] != nil {
		delete(x.w.Header(), "Content-Type") // an X-Accel-Redirect that led here may have set one
	}
	if !s.ignored["X-Accel-Charset"] {
		x.charset.accel = a.Header.Get("X-Accel-Charset")
	}
	s.rewriteCookies(x, a)
}

// kept are the header fields of a response that are kept for what is served instead
// (ngx_http_upstream_headers_in).
var kept = []string{"Content-Type", "Set-Cookie", "Content-Disposition", "Cache-Control", "Expires", "Accept-Ranges"}

// divert discards the response: what replaces it is served when the proxy has returned.
func divert(x *exchange, a *proxy.Response, to diversion) {
	x.proxy.diverted = &to
	a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.takeBody(r.Body)
		if to.uri != "" {
			for _, name := range kept {
				if lines := a.Header[name]; lines != nil {
					w.Header()[name] = lines
				}
			}
			x.proxy.kept = slices.DeleteFunc(slices.Clone(x.proxy.names), func(name string) bool {
				return !slices.Contains(kept, http.CanonicalHeaderKey(name))
			})
		} else if lines := a.Header["Www-Authenticate"]; lines != nil && to.status == http.StatusUnauthorized {
			w.Header()["Www-Authenticate"] = lines
		}
	}))
}

// serve continues where the diversion leads.
func (to *diversion) serve(x *exchange, w http.ResponseWriter) int {
	if to.status != 0 {
		return to.status
	}
	if x.HTTP.Method != http.MethodHead {
		becomeGET(x)
	}
	if strings.HasPrefix(to.uri, "@") {
		return x.redirectNamed(w, to.uri)
	}
	uri, args, ok := safePath(to.uri)
	if !ok {
		x.logError("upstream sent invalid \"X-Accel-Redirect\" field \"" + to.uri + "\"")
		return http.StatusNotFound
	}
	return x.redirect(w, uri, args)
}
