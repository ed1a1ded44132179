package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/cgi"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// paramSettings are what FastCGI, SCGI and uwsgi have and HTTP has not.
type paramSettings struct {
	list    []param
	fields  map[string]bool // those of list that stand for header fields, in lower case without HTTP_
	fastCGI fastCGISettings
	uwsgi   uwsgiSettings
}

// param is a fastcgi_param, scgi_param or uwsgi_param.
type param struct {
	name       string
	value      vars.Value
	ifNotEmpty bool
}

// params are the directives of protocols with parameters.
func (f *family) params() []directive {
	return []directive{{name: "param", repeatable: true, compile: f.param}}
}

// param compiles "fastcgi_param name value [if_not_empty]". Directives on an inner level replace those of the outer levels.
func (f *family) param(c *compiler, l *level, d *conf.Directive) error {
	s := &f.slot.edit(l).params
	if l.first(d.Name) {
		s.list, s.fields = nil, map[string]bool{}
	}
	v, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	if len(d.Args) == 3 && d.Args[2] != "if_not_empty" {
		return d.Errorf("invalid parameter \"%s\"", d.Args[2])
	}
	if name, ok := strings.CutPrefix(d.Args[0], "HTTP_"); ok {
		s.fields[strings.ToLower(name)] = true
		if d.Args[1] == "" {
			return nil // it leaves the client's out
		}
	}
	s.list = append(s.list, param{d.Args[0], v, len(d.Args) == 3})
	return nil
}

// paramsOf returns the parameters of a request that a family sends.
func (f *family) paramsOf(r *http.Request) []cgi.Param {
	x := exchangeOf(r.Context())
	s := f.slot.of(x.level)
	var list []cgi.Param
	for _, p := range s.params.list {
		value := p.value.String(&x.Request)
		if p.name == "CONTENT_LENGTH" && value == "" && x.HTTP.ContentLength < 0 && r.ContentLength >= 0 { // a chunked body, which was buffered
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		if value != "" || !p.ifNotEmpty {
			list = append(list, cgi.Param{Name: p.name, Value: value})
		}
	}
	if host := x.HostPort(); host != "" && !s.params.fields["host"] { // not the client's: the program must not see another one than nginx
		list = append(list, cgi.Param{Name: "HTTP_HOST", Value: host})
	}
	if s.passFields {
		list = append(list, cgi.Fields(x.HTTP, x.Connection, s.params.fields)...)
	}
	return list
}

// cgiDefaults are the defaults of protocols with parameters. A program that serves one request at a time must not wait for a
// client: both bodies are buffered, as all of requests are.
func cgiDefaults() proxySettings {
	b := responseBuffers
	b.response = true
	return proxySettings{
		buffers:        b,
		connectTimeout: time.Minute,
		passBody:       true,
		passFields:     true,
		readTimeout:    time.Minute,
		retry:          proxy.Retry{Errors: true, Timeouts: true},
		sendTimeout:    time.Minute,
		tls:            tlsRule{depth: 1, min: tls.VersionTLS12, sessions: true},
	}
}

// plain leaves the request as it is: the parameters say what it is about.
func plain(p *passRule, x *exchange, o *proxy.Outbound) {
	if x.engine.backtracks { // so that a parameter which fails does so before anything is sent
		_ = p.family.paramsOf(o.In)
	}
	o.Out.Host = x.HTTP.Host
	o.Out.URL.Path, o.Out.URL.RawPath, o.Out.URL.RawQuery, o.Out.URL.Opaque = "/", "", "", ""
	clear(o.Out.Header)
}

// over returns a transport of a protocol that is not HTTP, whose connections t makes.
func (e *Engine) over(p *passRule, protocol backend.Protocol, t *upstream.Transport, g *group, kept bool) http.RoundTripper {
	s := p.settings()
	o := backend.Options{
		Protocol:    protocol,
		ReadTimeout: nonZero(s.readTimeout), WriteTimeout: nonZero(s.sendTimeout),
		Dial: func(ctx context.Context, addr string) (net.Conn, error) { return dialBackend(ctx, t, addr) },
	}
	if k := g.keepalive; kept && !k.off {
		o.MaxIdle, o.IdleTimeout = cmp.Or(k.max, 32), cmp.Or(k.timeout, time.Minute)
		o.MaxAge, o.MaxRequests = cmp.Or(k.time, time.Hour), cmp.Or(k.requests, 1000)
	}
	return e.backend(backendKey{p, t}, o)
}

// backendKey identifies a transport of a protocol that is not HTTP.
type backendKey struct {
	rule *passRule
	dial *upstream.Transport
}

// backend returns the transport for a key.
func (e *Engine) backend(key backendKey, o backend.Options) *backend.Transport {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t, ok := e.backends[key]; ok {
		return t
	}
	if len(e.backends) >= maxTransports {
		for k, old := range e.backends { // any one, as in transport
			old.CloseIdleConnections()
			delete(e.backends, k)
			break
		}
	}
	t := backend.New(o)
	e.backends[key] = t
	return t
}

// dialBackend makes a connection, with TLS if t has a configuration of it.
func dialBackend(ctx context.Context, t *upstream.Transport, addr string) (net.Conn, error) {
	c, err := t.Dial(ctx, "tcp", addr)
	config := t.TLSConfig()
	if err != nil || config == nil {
		return c, err
	}
	encrypted := tls.Client(c, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	return encrypted, nil
}
