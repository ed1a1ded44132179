package engine

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
)

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
	hide           map[string]bool // canonical names of the response's fields that the client does not receive
	ignored        map[string]bool // proxy_ignore_headers
	intercept      bool            // proxy_intercept_errors
	method         vars.Value
	readTimeout    time.Duration
	redirectGiven  bool // there is a proxy_redirect: the default does not apply
	redirects      []redirectRule
	retry          proxy.Retry
	retryOff       bool
	sendTimeout    time.Duration
	sslName        vars.Value // "" is $proxy_host
	tls            tlsRule
	withoutBody    bool // proxy_pass_request_body off
	withoutFields  bool // proxy_pass_request_headers off
}

func defaultProxySettings() proxySettings {
	return proxySettings{
		buffers:        defaultBuffers(),
		connectTimeout: time.Minute,
		hide:           map[string]bool{},
		readTimeout:    time.Minute,
		retry:          defaultRetry(),
		sendTimeout:    time.Minute,
		tls:            tlsRule{depth: 1, min: tls.VersionTLS12},
	}
}

// proxyField is one proxy_set_header.
type proxyField struct {
	name  string
	value vars.Value
	first bool // the first of its name, which replaces the client's
}

// proxySetHeader compiles "proxy_set_header name value". Directives on an inner level replace
// those of the outer levels.
func proxySetHeader(c *compiler, l *level, d *conf.Directive) error {
	if l.first("proxy_set_header") {
		l.proxy.fields = nil
	}
	v, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	l.proxy.fields = append(l.proxy.fields, proxyField{name: http.CanonicalHeaderKey(d.Args[0]), value: v})
	return nil
}

// proxyHTTPVersion accepts 1.0 and 1.1. Requests to upstreams are always HTTP/1.1: every server
// must handle such a request as it would handle one of 1.0.
func proxyHTTPVersion(_ *compiler, _ *level, d *conf.Directive) error {
	switch d.Args[0] {
	case "1.0", "1.1":
		return nil
	case "2":
		return d.Errorf("directive \"proxy_http_version 2\" is not supported by culvert yet")
	}
	return d.Errorf("invalid value \"%s\"", d.Args[0])
}

func proxyConnectTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.proxy.connectTimeout, err = d.Duration()
	return err
}

func proxySendTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.proxy.sendTimeout, err = d.Duration()
	return err
}

func proxyReadTimeout(_ *compiler, l *level, d *conf.Directive) (err error) {
	l.proxy.readTimeout, err = d.Duration()
	return err
}

// proxyHideHeader compiles "proxy_hide_header name".
func proxyHideHeader(_ *compiler, l *level, d *conf.Directive) error {
	return l.hide(d.Args[0], true)
}

// proxyPassHeader compiles "proxy_pass_header name".
func proxyPassHeader(_ *compiler, l *level, d *conf.Directive) error {
	return l.hide(d.Args[0], false)
}

func (l *level) hide(name string, hidden bool) error {
	next := map[string]bool{}
	for n, h := range l.proxy.hide {
		next[n] = h
	}
	next[http.CanonicalHeaderKey(name)] = hidden
	l.proxy.hide = next
	return nil
}

// hidden reports whether a field of an upstream's response is hidden from the client.
func (l *level) hidden(name string) bool {
	if h, ok := l.proxy.hide[name]; ok {
		return h
	}
	switch name {
	case "Date", "Server", "X-Pad", "X-Accel-Expires", "X-Accel-Redirect", "X-Accel-Limit-Rate",
		"X-Accel-Buffering", "X-Accel-Charset":
		return true
	}
	return false
}

// hideHeaders removes the fields of an upstream's response that are hidden from the client, and
// rewrites its redirects.
func (l *level) hideHeaders(x *exchange, h http.Header) {
	if !x.proxied {
		return
	}
	for name := range h {
		if l.hidden(name) {
			delete(h, name)
		}
	}
	l.rewriteRedirects(x, h)
}
