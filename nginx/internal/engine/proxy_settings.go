package engine

import (
	"crypto/tls"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// proxyFamily sends requests by HTTP (ngx_http_proxy_module.c).
var proxyFamily = &family{
	name:         "proxy",
	schemes:      []urlScheme{{prefix: "http://", port: "80"}, {prefix: "https://", secure: true, port: "443"}},
	uris:         true,
	hidden:       []string{"Date", "Server", "X-Pad"},
	roundTripper: func(_ *Engine, _ *passRule, t *upstream.Transport, _ *group) http.RoundTripper { return t },
	outbound:     (*passRule).rewrite,
	slot: newSlot(proxySettings{
		buffers:        responseBuffers,
		connectTimeout: time.Minute,
		passBody:       true,
		passFields:     true,
		readTimeout:    time.Minute,
		retry:          proxy.Retry{Errors: true, Timeouts: true}, // "proxy_next_upstream error timeout"
		sendTimeout:    time.Minute,
		tls:            tlsRule{depth: 1, min: tls.VersionTLS12, sessions: true},
	}),
}

var proxyModule = module{
	directives: proxyFamily.named(proxyFamily.connections(), proxyFamily.responses(), proxyFamily.stores(), proxyFamily.bodies(), proxyFamily.certificates(), proxyFamily.fields(), proxyFamily.urls()),
	variables: map[string]variable{
		"proxy_host": nonEmpty(func(x *exchange) string { return x.proxy.host }),
		"proxy_port": nonEmpty(func(x *exchange) string { return x.proxy.port }),
	},
	merge: mergeProxy,
	hooks: hooks{content: serveProxy, header: hideHeaders},
}

// proxySettings are the proxy_ directives that a level inherits.
type proxySettings struct {
	bind           vars.Value
	body           *vars.Value // proxy_set_body
	buffers        buffers
	connectTimeout time.Duration
	cookieDomains  []cookieRule
	cookieFlags    []flagRule
	cookiePaths    []cookieRule
	fields         []proxyField
	forceRanges    bool            // proxy_force_ranges
	gzipFlag       int             // memcached_gzip_flag
	http2          bool            // proxy_http_version 2, and gRPC
	hide           map[string]bool // canonical names of the response's fields that the client does not receive
	ignored        map[string]bool // proxy_ignore_headers
	intercept      bool            // proxy_intercept_errors
	limitRate      vars.Value      // proxy_limit_rate, a size
	method         vars.Value
	passBody       bool // proxy_pass_request_body
	params         paramSettings
	passFields     bool // proxy_pass_request_headers
	passTrailers   bool // proxy_pass_trailers
	readTimeout    time.Duration
	redirectGiven  bool // there is a proxy_redirect: the default does not apply
	redirects      []redirectRule
	retry          proxy.Retry
	retryOff       bool
	sendTimeout    time.Duration
	store          storeRule
	sslCert        certPair
	sslName        vars.Value // "" is $proxy_host
	tls            tlsRule
}

// proxyField is one proxy_set_header.
type proxyField struct {
	name  string // canonical
	spelt string
	value vars.Value
	first bool // the first of its name, which replaces the client's
}

// setHeader compiles "proxy_set_header name value". Directives on an inner level replace
// those of the outer levels.
func (f *family) setHeader(c *compiler, l *level, d *conf.Directive) error {
	s := f.slot.edit(l)
	if l.first(d.Name) {
		s.fields = nil
	}
	v, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	s.fields = append(s.fields, proxyField{name: http.CanonicalHeaderKey(d.Args[0]), spelt: d.Args[0], value: v})
	return nil
}

// httpVersion compiles "proxy_http_version 1.0|1.1|2". In the place of 1.0 it is 1.1: every server
// must handle such a request as it would handle one of 1.0.
func (f *family) httpVersion(_ *compiler, l *level, d *conf.Directive) error {
	switch d.Args[0] {
	case "1.0", "1.1", "2":
		f.slot.edit(l).http2 = d.Args[0] == "2"
		return nil
	}
	return d.Errorf("invalid value \"%s\"", d.Args[0])
}

func onlyHTTP11(d *conf.Directive) string {
	if slices.Equal(d.Args, []string{"1.0"}) {
		return "upstreams are sent HTTP/1.1"
	}
	return ""
}

// ownFields are the fields of proxy_set_header that the proxy sets itself: they frame a message,
// or are about one connection.
var ownFields = []string{"content-length", "keep-alive", "te", "trailer", "transfer-encoding"}

func ownField(d *conf.Directive) string {
	if len(d.Args) == 2 && d.Args[1] != "" && slices.Contains(ownFields, strings.ToLower(d.Args[0])) {
		return "the framing of a message and the fields of one connection are the proxy's"
	}
	return ""
}

// hideHeader compiles "proxy_hide_header name".
func (f *family) hideHeader(_ *compiler, l *level, d *conf.Directive) error {
	return f.hideField(l, d.Args[0], true)
}

// passHeader compiles "proxy_pass_header name".
func (f *family) passHeader(_ *compiler, l *level, d *conf.Directive) error {
	return f.hideField(l, d.Args[0], false)
}

func (f *family) hideField(l *level, name string, hidden bool) error {
	s := f.slot.edit(l)
	next := map[string]bool{}
	maps.Copy(next, s.hide)
	next[http.CanonicalHeaderKey(name)] = hidden
	s.hide = next
	return nil
}

// hidden reports whether a field of an upstream's response is hidden from the client.
func (f *family) hides(s *proxySettings, name string) bool {
	if h, ok := s.hide[name]; ok {
		return h
	}
	switch name {
	case "X-Accel-Expires", "X-Accel-Redirect", "X-Accel-Limit-Rate", "X-Accel-Buffering", "X-Accel-Charset":
		return true
	}
	return slices.Contains(f.hidden, name)
}

// hideHeaders removes the fields of an upstream's response that are hidden from the client, and
// rewrites its redirects.
func hideHeaders(x *exchange, h http.Header) {
	if !x.proxy.responded {
		return
	}
	f := (*passSlot.of(x.level)).family
	s := f.slot.of(x.level)
	for name := range h {
		if f.hides(s, name) {
			delete(h, name)
		}
	}
	s.rewriteRedirects(x, h)
}
