package engine

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// family is a protocol that upstreams speak, with its directives: "proxy_read_timeout", "fastcgi_read_timeout" and so on are one
// directive, with a setting for each family. A location has one family's pass directive, and that family's settings apply.
type family struct {
	name    string // what the names of its directives begin with, before an underscore
	slot    slot[proxySettings]
	schemes []urlScheme
	uris    bool // a URL may have a URI
	lengths bool // the length of a body precedes it

	noTrailers bool // a request has none behind its content, whose length is known without them

	noContent bool     // requests have none: that of the client is not read
	tunnels   bool     // the client's connection becomes one to the server
	typed     bool     // types gives the Content-Type, which the protocol has not
	hidden    []string // fields that the client does not receive, beside X-Accel-

	// roundTripper returns what runs exchanges; t has the connections of HTTP, and dials.
	roundTripper func(e *Engine, p *passRule, t *upstream.Transport, g *group) http.RoundTripper
	// outbound prepares a request for it.
	outbound func(p *passRule, x *exchange, o *proxy.Outbound)
}

// named returns the directives of some lists, with the name of the family before theirs.
func (f *family) named(lists ...[]directive) []directive {
	var all []directive
	for _, list := range lists {
		for _, d := range list {
			d.name = f.name + "_" + d.name
			all = append(all, d)
		}
	}
	return all
}

// connections are the directives about reaching a server: every family has them.
func (f *family) connections() []directive {
	pass := f.passTo
	if f.tunnels {
		pass = f.tunnelPass
	}
	list := []directive{
		{name: "bind", compile: f.bind},
		{name: "connect_timeout", compile: setDuration(f.slot, func(s *proxySettings) *time.Duration { return &s.connectTimeout })},
		{name: "next_upstream", repeatable: true, compile: f.nextUpstream},
		{name: "next_upstream_timeout", compile: setDuration(f.slot, func(s *proxySettings) *time.Duration { return &s.retry.Timeout })},
		{name: "next_upstream_tries", compile: setNumber(f.slot, func(s *proxySettings) *int { return &s.retry.Tries })},
		{name: "pass", compile: pass},
		{name: "read_timeout", compile: setDuration(f.slot, func(s *proxySettings) *time.Duration { return &s.readTimeout })},
	}
	if !f.tunnels { // whose writes wait as long as what is read
		list = append(list, directive{name: "send_timeout", compile: setDuration(f.slot, func(s *proxySettings) *time.Duration { return &s.sendTimeout })})
	}
	return list
}

// responses are the directives about the header of a response.
func (f *family) responses() []directive {
	return []directive{
		{name: "hide_header", repeatable: true, compile: f.hideHeader},
		{name: "ignore_headers", compile: f.ignoreHeaders},
		{name: "intercept_errors", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.intercept })},
		{name: "pass_header", repeatable: true, compile: f.passHeader},
	}
}

// bodies are the directives about what is sent of a request, and about buffers.
func (f *family) bodies() []directive {
	return []directive{
		{name: "buffering", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.buffers.response })},
		{name: "buffers", compile: f.buffers},
		{name: "limit_rate", compile: f.limitRate},
		{name: "max_temp_file_size", compile: setSize(f.slot, func(s *proxySettings) *int64 { return &s.buffers.responseDisk })},
		{name: "pass_request_body", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.passBody })},
		{name: "pass_request_headers", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.passFields })},
		{name: "request_buffering", compile: f.requestBuffering},
		{name: "temp_path", compile: f.tempPath},
	}
}

// certificates are the directives about TLS.
func (f *family) certificates() []directive {
	return []directive{
		{name: "ssl_certificate", compile: f.sslCertificate},
		{name: "ssl_certificate_cache", compile: f.sslCertificateCache},
		{name: "ssl_certificate_key", compile: f.sslCertificate},
		{name: "ssl_ciphers", compile: f.sslCiphers, notFollowed: missingCiphers},
		{name: "ssl_conf_command", repeatable: true, compile: f.sslConfCommand, notFollowed: unfollowedCommand},
		{name: "ssl_crl", compile: f.sslCRL},
		{name: "ssl_name", compile: setValue(f.slot, func(s *proxySettings) *vars.Value { return &s.sslName })},
		{name: "ssl_password_file", compile: f.sslPasswordFile},
		{name: "ssl_protocols", compile: f.sslProtocols},
		{name: "ssl_server_name", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.tls.sni })},
		{name: "ssl_session_reuse", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.tls.sessions })},
		{name: "ssl_trusted_certificate", compile: f.sslTrustedCertificate},
		{name: "ssl_verify", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.tls.verify })},
		{name: "ssl_verify_depth", compile: setNumber(f.slot, func(s *proxySettings) *int { return &s.tls.depth })},
	}
}

// fields are the directives about the fields of a request.
func (f *family) fields() []directive {
	return []directive{{name: "set_header", repeatable: true, compile: f.setHeader, notFollowed: ownField}}
}

// urls are the directives that only the proxy module has: cookies and redirects that contain URLs, and what changes a request.
func (f *family) urls() []directive {
	return []directive{
		{name: "cookie_domain", repeatable: true, compile: f.cookieDomain},
		{name: "cookie_flags", repeatable: true, compile: f.cookieFlags},
		{name: "cookie_path", repeatable: true, compile: f.cookiePath},
		{name: "http_version", compile: f.httpVersion, notFollowed: onlyHTTP11},
		{name: "method", compile: setValue(f.slot, func(s *proxySettings) *vars.Value { return &s.method })},
		{name: "pass_trailers", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.passTrailers })},
		{name: "redirect", repeatable: true, compile: f.redirect},
		{name: "set_body", compile: f.setBody},
	}
}
