package engine

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/upstream"
)

// streamProxyModule proxies sessions (ngx_stream_proxy_module.c).
var streamProxyModule = module{
	directives: []directive{
		{name: "proxy_bind", compile: streamBind},
		{name: "proxy_buffer_size", compile: setSize(streamProxySlot, func(s *streamProxySettings) *int64 { return &s.bufferSize })},
		{name: "proxy_connect_timeout", compile: setDuration(streamProxySlot, func(s *streamProxySettings) *time.Duration { return &s.proxy.ConnectTimeout })},
		{name: "proxy_download_rate", compile: setValue(streamProxySlot, func(s *streamProxySettings) *vars.Value { return &s.proxy.DownloadRate })},
		{name: "proxy_half_close", compile: setFlag(streamProxySlot, func(s *streamProxySettings) *bool { return &s.proxy.HalfClose })},
		{name: "proxy_next_upstream", compile: setFlag(streamProxySlot, func(s *streamProxySettings) *bool { return &s.proxy.Next })},
		{name: "proxy_next_upstream_timeout", compile: setDuration(streamProxySlot, func(s *streamProxySettings) *time.Duration { return &s.proxy.NextTimeout })},
		{name: "proxy_next_upstream_tries", compile: setNumber(streamProxySlot, func(s *streamProxySettings) *int { return &s.proxy.Tries })},
		{name: "proxy_pass", compile: streamProxyPass},
		{name: "proxy_protocol", compile: setWord(streamProxySlot, func(s *streamProxySettings) *int { return &s.proxy.Header }, headerVersions)},
		{name: "proxy_requests", compile: setNumber(streamProxySlot, func(s *streamProxySettings) *int { return &s.proxy.Requests })},
		{name: "proxy_responses", compile: setNumber(streamProxySlot, func(s *streamProxySettings) *int { return &s.proxy.Responses })},
		{name: "proxy_ssl", compile: setFlag(streamProxySlot, func(s *streamProxySettings) *bool { return &s.ssl })},
		{name: "proxy_ssl_alpn", compile: streamProxyALPN},
		{name: "proxy_ssl_certificate", compile: streamProxyCertificate},
		{name: "proxy_ssl_certificate_cache", compile: streamProxyCertificateCache},
		{name: "proxy_ssl_certificate_key", compile: streamProxyCertificate},
		{name: "proxy_ssl_ciphers", compile: streamProxyCiphers, notFollowed: missingCiphers},
		{name: "proxy_ssl_conf_command", repeatable: true, compile: streamProxyConfCommand, notFollowed: unfollowedCommand},
		{name: "proxy_ssl_crl", compile: streamProxyFile},
		{name: "proxy_ssl_name", compile: streamProxyName},
		{name: "proxy_ssl_password_file", compile: streamProxyPasswordFile},
		{name: "proxy_ssl_protocols", compile: streamProxyProtocols},
		{name: "proxy_ssl_server_name", compile: setFlag(streamProxySlot, func(s *streamProxySettings) *bool { return &s.tls.sni })},
		{name: "proxy_ssl_session_reuse", compile: setFlag(streamProxySlot, func(s *streamProxySettings) *bool { return &s.sessions })},
		{name: "proxy_ssl_trusted_certificate", compile: streamProxyFile},
		{name: "proxy_ssl_verify", compile: setFlag(streamProxySlot, func(s *streamProxySettings) *bool { return &s.tls.verify })},
		{name: "proxy_ssl_verify_depth", compile: setNumber(streamProxySlot, func(s *streamProxySettings) *int { return &s.tls.depth })},
		{name: "proxy_timeout", compile: setDuration(streamProxySlot, func(s *streamProxySettings) *time.Duration { return &s.proxy.Timeout })},
		{name: "proxy_upload_rate", compile: setValue(streamProxySlot, func(s *streamProxySettings) *vars.Value { return &s.proxy.UploadRate })},
	},
	merge: mergeStreamProxy,
}

// headerVersions are the words of proxy_protocol.
var headerVersions = map[string]int{"off": 0, "on": 1, "v2": 2}

// streamProxySettings are the proxy_ directives that a server inherits.
type streamProxySettings struct {
	proxy      stream.Proxy
	bufferSize int64
	ssl        bool
	sessions   bool // proxy_ssl_session_reuse
	tls        tlsRule
	cert, key  vars.Value
	certAt     *conf.Directive // nil: there is no certificate
	keyAt      *conf.Directive
	name       *vars.Value // proxy_ssl_name; nil is the upstream's
	protocols  []vars.Value
}

var streamProxySlot = newSlot(streamProxySettings{
	proxy:      stream.Proxy{ConnectTimeout: time.Minute, Timeout: 10 * time.Minute, Next: true, Responses: -1},
	bufferSize: 16 << 10,
	sessions:   true,
	tls:        tlsRule{depth: 1, min: tls.VersionTLS12},
})

// streamPassSlot holds a server's proxy_pass.
var streamPassSlot = newLocalSlot[*streamPassRule]()

// streamPassRule is a proxy_pass of stream.
type streamPassRule struct {
	at     *conf.Directive
	value  vars.Value
	engine *Engine
	groups map[string]*group
	fixed  *group // nil: the value has variables
	rule   *resolverRule
}

// streamProxyPass compiles "proxy_pass address".
func streamProxyPass(c *compiler, l *level, d *conf.Directive) error {
	value, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	p := &streamPassRule{at: d, value: value, engine: c.engine, groups: c.groups}
	if text, constant := value.Literal(); constant {
		if p.fixed = c.groups[text]; p.fixed == nil {
			p.fixed = newGroup(text)
			if p.fixed.targets, err = resolve(upstream.Target{}, d, text, ""); err != nil {
				return err
			}
			c.groups[text] = p.fixed
		}
	}
	*streamPassSlot.edit(l) = p
	*streamContentSlot.edit(l) = nil
	return nil
}

// mergeStreamProxy creates the proxy of a server when its settings are known.
func mergeStreamProxy(c *compiler, l *level) error {
	pass, settings := *streamPassSlot.of(l), streamProxySlot.of(l)
	if l.server == nil {
		return nil
	}
	proxy := settings.proxy
	proxy.ConnectTimeout, proxy.Timeout = nonZero(proxy.ConnectTimeout), nonZero(proxy.Timeout)
	proxy.BufferSize = int(max(settings.bufferSize, 1))
	if settings.ssl {
		var err error
		if proxy.TLS, err = settings.upstreamTLS(c); err != nil {
			return err
		}
	}
	if pass == nil || *streamContentSlot.of(l) != nil {
		return nil
	}
	pass.rule = *resolverSlot.of(l)
	proxy.Upstream = pass.upstream
	*streamContentSlot.edit(l) = &proxy
	return nil
}

// upstream returns the upstream of a session.
func (p *streamPassRule) upstream(ctx context.Context, s *stream.Session) (stream.Upstream, bool) {
	g, err := p.group(s)
	var u *upstream.Group
	if err == nil {
		u, err = p.engine.upstream(g, "http") // the scheme does not matter: connections are not the group's
	}
	if err == nil {
		err = p.engine.lookUp(ctx, g)
	}
	if err != nil {
		s.Error(err.Error())
		return stream.Upstream{}, false
	}
	return stream.Upstream{Group: u, Name: g.name, Observe: g.least.onSession()}, true
}

func (p *streamPassRule) group(s *stream.Session) (*group, error) {
	if p.fixed != nil {
		return p.fixed, nil
	}
	text := p.value.String(&s.Request)
	if g := p.groups[text]; g != nil {
		return g, nil
	}
	if text == "" {
		return nil, p.at.Errorf("no host in upstream \"\"")
	}
	return p.engine.names.group(p.rule, passTo{address: text})
}

// streamBind compiles "proxy_bind address|off".
func streamBind(c *compiler, l *level, d *conf.Directive) (err error) {
	if err := checkBind(d); err != nil {
		return err
	}
	s := streamProxySlot.edit(l)
	if d.Args[0] == "off" {
		s.proxy.Bind = vars.Value{}
		return nil
	}
	s.proxy.Bind, err = c.value(d, d.Args[0])
	if text, constant := s.proxy.Bind.Literal(); err == nil && constant {
		if _, ok := bindAddress(text); !ok {
			return d.Errorf("invalid address \"%s\"", text)
		}
	}
	return err
}
