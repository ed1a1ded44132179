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
)

// proxyModule sends requests to upstreams (ngx_http_proxy_module.c).
var proxyModule = module{
	directives: []directive{
		{name: "client_body_buffer_size", compile: setSize(proxySlot, func(s *proxySettings) *int64 { return &s.buffers.requestMemory })},
		{name: "client_body_temp_path", compile: clientBodyTempPath},
		{name: "proxy_bind", compile: proxyBind},
		{name: "proxy_buffering", compile: setFlag(proxySlot, func(s *proxySettings) *bool { return &s.buffers.response })},
		{name: "proxy_buffers", compile: proxyBuffers},
		{name: "proxy_connect_timeout", compile: setDuration(proxySlot, func(s *proxySettings) *time.Duration { return &s.connectTimeout })},
		{name: "proxy_cookie_domain", repeatable: true, compile: proxyCookieDomain},
		{name: "proxy_cookie_flags", repeatable: true, compile: proxyCookieFlags},
		{name: "proxy_cookie_path", repeatable: true, compile: proxyCookiePath},
		{name: "proxy_hide_header", repeatable: true, compile: proxyHideHeader},
		{name: "proxy_http_version", compile: proxyHTTPVersion, notFollowed: onlyHTTP11},
		{name: "proxy_ignore_headers", compile: proxyIgnoreHeaders},
		{name: "proxy_intercept_errors", compile: setFlag(proxySlot, func(s *proxySettings) *bool { return &s.intercept })},
		{name: "proxy_max_temp_file_size", compile: setSize(proxySlot, func(s *proxySettings) *int64 { return &s.buffers.responseDisk })},
		{name: "proxy_method", compile: setValue(proxySlot, func(s *proxySettings) *vars.Value { return &s.method })},
		{name: "proxy_next_upstream", repeatable: true, compile: proxyNextUpstream},
		{name: "proxy_next_upstream_timeout", compile: setDuration(proxySlot, func(s *proxySettings) *time.Duration { return &s.retry.Timeout })},
		{name: "proxy_next_upstream_tries", compile: setNumber(proxySlot, func(s *proxySettings) *int { return &s.retry.Tries })},
		{name: "proxy_pass", compile: proxyPass},
		{name: "proxy_pass_header", repeatable: true, compile: proxyPassHeader},
		{name: "proxy_pass_request_body", compile: setFlag(proxySlot, func(s *proxySettings) *bool { return &s.passBody })},
		{name: "proxy_pass_request_headers", compile: setFlag(proxySlot, func(s *proxySettings) *bool { return &s.passFields })},
		{name: "proxy_read_timeout", compile: setDuration(proxySlot, func(s *proxySettings) *time.Duration { return &s.readTimeout })},
		{name: "proxy_redirect", repeatable: true, compile: proxyRedirect},
		{name: "proxy_request_buffering", compile: proxyRequestBuffering},
		{name: "proxy_send_timeout", compile: setDuration(proxySlot, func(s *proxySettings) *time.Duration { return &s.sendTimeout })},
		{name: "proxy_set_body", compile: proxySetBody},
		{name: "proxy_set_header", repeatable: true, compile: proxySetHeader, notFollowed: ownField},
		{name: "proxy_ssl_certificate", compile: proxySSLCertificate},
		{name: "proxy_ssl_certificate_key", compile: proxySSLCertificate},
		{name: "proxy_ssl_crl", compile: proxySSLCRL},
		{name: "proxy_ssl_name", compile: setValue(proxySlot, func(s *proxySettings) *vars.Value { return &s.sslName })},
		{name: "proxy_ssl_protocols", compile: proxySSLProtocols},
		{name: "proxy_ssl_server_name", compile: setFlag(proxySlot, func(s *proxySettings) *bool { return &s.tls.sni })},
		{name: "proxy_ssl_trusted_certificate", compile: proxySSLTrustedCertificate},
		{name: "proxy_ssl_verify", compile: setFlag(proxySlot, func(s *proxySettings) *bool { return &s.tls.verify })},
		{name: "proxy_ssl_verify_depth", compile: setNumber(proxySlot, func(s *proxySettings) *int { return &s.tls.depth })},
		{name: "proxy_temp_path", compile: proxyTempPath},
	},
	variables: map[string]variable{
		"proxy_host": nonEmpty(func(x *exchange) string { return x.proxy.host }),
		"proxy_port": nonEmpty(func(x *exchange) string { return x.proxy.port }),
	},
	merge: mergeProxy,
	hooks: hooks{content: serveProxy, header: hideHeaders},
}

var proxySlot = newSlot(proxySettings{
	buffers:        buffers{requestMemory: 16 << 10, responseMemory: 8 * 4 << 10, responseDisk: 1 << 30},
	connectTimeout: time.Minute,
	passBody:       true,
	passFields:     true,
	readTimeout:    time.Minute,
	retry:          proxy.Retry{Errors: true, Timeouts: true}, // "proxy_next_upstream error timeout"
	sendTimeout:    time.Minute,
	tls:            tlsRule{depth: 1, min: tls.VersionTLS12},
})

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
	passBody       bool // proxy_pass_request_body
	passFields     bool // proxy_pass_request_headers
	readTimeout    time.Duration
	redirectGiven  bool // there is a proxy_redirect: the default does not apply
	redirects      []redirectRule
	retry          proxy.Retry
	retryOff       bool
	sendTimeout    time.Duration
	sslName        vars.Value // "" is $proxy_host
	tls            tlsRule
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
	s := proxySlot.edit(l)
	if l.first("proxy_set_header") {
		s.fields = nil
	}
	v, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	s.fields = append(s.fields, proxyField{name: http.CanonicalHeaderKey(d.Args[0]), value: v})
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

// proxyHideHeader compiles "proxy_hide_header name".
func proxyHideHeader(_ *compiler, l *level, d *conf.Directive) error {
	return hideField(l, d.Args[0], true)
}

// proxyPassHeader compiles "proxy_pass_header name".
func proxyPassHeader(_ *compiler, l *level, d *conf.Directive) error {
	return hideField(l, d.Args[0], false)
}

func hideField(l *level, name string, hidden bool) error {
	s := proxySlot.edit(l)
	next := map[string]bool{}
	maps.Copy(next, s.hide)
	next[http.CanonicalHeaderKey(name)] = hidden
	s.hide = next
	return nil
}

// hidden reports whether a field of an upstream's response is hidden from the client.
func (s *proxySettings) hidden(name string) bool {
	if h, ok := s.hide[name]; ok {
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
func hideHeaders(x *exchange, h http.Header) {
	if !x.proxy.responded {
		return
	}
	s := proxySlot.of(x.level)
	for name := range h {
		if s.hidden(name) {
			delete(h, name)
		}
	}
	s.rewriteRedirects(x, h)
}
