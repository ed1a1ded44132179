package engine

import (
	"errors"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// passRule is a proxy_pass.
type passRule struct {
	at      *conf.Directive
	level   *level
	url     string // scheme://host[:port], "" with variables
	host    string // $proxy_host
	port    string // $proxy_port
	uri     string // what replaces the location's name
	hasURI  bool
	proxy   http.Handler // nil with variables
	dynamic *dynamicPass // nil without variables
	fields  []proxyField // what goes to the upstream, defaults included
	wants   upgradeFields
}

// proxyPass compiles "proxy_pass URL". What it leads to is made when the whole
// location is known, by finishPass.
func proxyPass(c *compiler, l *level, d *conf.Directive) error {
	p := &passRule{at: d, level: l}
	v, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	l.pass = p
	text, constant := v.Literal()
	if !constant {
		p.dynamic = &dynamicPass{url: v}
		return nil
	}
	scheme, address, uri, err := cutURL(text)
	if err != nil {
		return d.Errorf("%s", err)
	}
	p.uri, p.hasURI = uri, uri != ""
	if p.hasURI && (l.isPattern() || l.kind == namedLocation || l.condition) {
		return d.Errorf("\"proxy_pass\" cannot have URI part in location given by regular expression, " +
			"or inside named location, or inside \"if\" statement, or inside \"limit_except\" block")
	}
	p.url = scheme + "://" + address
	p.host, p.port = proxyHost(scheme, address)
	return nil
}

// cutURL cuts the URL of a proxy_pass.
func cutURL(text string) (scheme, address, uri string, err error) {
	rest, ok := "", false
	for _, scheme = range []string{"http", "https"} {
		if len(text) > len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
			if rest, ok = strings.CutPrefix(text[len(scheme):], "://"); ok {
				break
			}
		}
	}
	if !ok {
		return "", "", "", errors.New("invalid URL prefix")
	}
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return scheme, rest, "", nil
	}
	if rest[i] != '/' {
		return scheme, rest[:i], "/" + rest[i:], nil
	}
	return scheme, rest[:i], rest[i:], nil
}

// proxyHost returns $proxy_host and $proxy_port: a standard port is not part of
// the host.
func proxyHost(scheme, address string) (host, port string) {
	standard := map[string]string{"http": "80", "https": "443"}[scheme]
	name, port := splitPort(address)
	switch port {
	case "":
		return address, standard
	case standard:
		return name, port
	}
	return address, port
}

// finishPass makes what l's proxy_pass leads to.
func (c *compiler) finishPass(l *level) error {
	p := l.pass
	if p == nil {
		return nil
	}
	if err := l.finishRedirects(); err != nil {
		return err
	}
	if err := p.finishFields(c); err != nil {
		return err
	}
	if p.dynamic != nil {
		p.dynamic.init(c, p)
		return nil
	}
	scheme, address, _, _ := cutURL(p.at.Args[0])
	g, err := c.group(p.at, scheme, address)
	if err != nil {
		return err
	}
	p.proxy, err = c.engine.newProxy(p, g, scheme)
	return err
}

// group finds the upstream that address names, or makes one of its host.
func (c *compiler) group(at *conf.Directive, scheme, address string) (*group, error) {
	if g, ok := c.groups[address]; ok {
		return g, nil
	}
	name := scheme + "://" + address // an upstream block can't have this name
	if g, ok := c.groups[name]; ok {
		return g, nil
	}
	standard := map[string]string{"http": "80", "https": "443"}[scheme]
	targets, err := resolve(upstream.Target{}, at, address, standard)
	if err != nil {
		return nil, err
	}
	g := &group{name: address, targets: targets, schemes: map[string]*upstream.Group{}}
	c.groups[name] = g
	return g, nil
}

// serve asks the upstream.
func (p *passRule) serve(x *exchange, w http.ResponseWriter) int {
	handler := p.proxy
	x.ProxyHost, x.ProxyPort = p.host, p.port
	if p.dynamic != nil {
		var status int
		if handler, status = p.dynamic.choose(x); status != 0 {
			return status
		}
	}
	x.proxied, x.proxyFailure = true, nil
	handler.ServeHTTP(w, p.inbound(x))
	if x.proxyFailure == nil {
		return 0
	}
	x.proxied = false
	var e *proxy.Error
	if !errors.As(x.proxyFailure, &e) || e.Kind == proxy.NoTarget {
		return http.StatusBadGateway // nginx: no live upstreams
	}
	return e.Status()
}

// newProxy makes the handler of p for a group.
func (e *Engine) newProxy(p *passRule, g *group, scheme string) (http.Handler, error) {
	u, err := e.upstream(g, scheme)
	if err != nil {
		return nil, p.at.Errorf("%s", err)
	}
	settings := p.level.proxy
	upgrades, err := e.forwarder(scheme, settings)
	if err != nil {
		return nil, p.at.Errorf("%s", err)
	}
	return proxy.New(proxy.Options{
		Upstream:     u,
		Transport:    e.transport(scheme, settings),
		Upgrades:     upgrades,
		BodyTimeout:  settings.readTimeout,
		ReadTimeout:  p.level.bodyTimeout,
		WriteTimeout: p.level.sendTimeout,
		Rewrite:      func(o *proxy.Outbound) { p.rewrite(exchangeOf(o.In.Context()), o) },
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err *proxy.Error) {
			exchangeOf(r.Context()).proxyFailure = err
		},
		OnError: func(r *http.Request, err *proxy.Error) {
			x := exchangeOf(r.Context())
			x.logProxy(p, err)
		},
	})
}
