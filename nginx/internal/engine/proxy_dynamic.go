package engine

import (
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// maxDynamic bounds the upstreams that a proxy_pass with variables creates.
const maxDynamic = 256

// dynamicPass is a proxy_pass with variables, whose upstream is determined for each request. Its
// URL must name an upstream block, an address, or a host that the resolver knows.
type dynamicPass struct {
	url    *vars.Value // nil: only the connection has variables
	pass   *passRule
	engine *Engine
	groups map[string]*group // the upstream blocks

	mu      sync.Mutex
	proxies map[passTo]dynamicProxy
}

type dynamicProxy struct {
	handler http.Handler
	group   *group
}

func (d *dynamicPass) init(c *compiler, p *passRule) {
	d.pass, d.engine, d.groups = p, c.engine, c.groups
	d.proxies = map[passTo]dynamicProxy{}
}

// choose evaluates the variables. It returns a status if they lead nowhere.
func (d *dynamicPass) choose(x *exchange) (http.Handler, int) {
	to := d.pass.to
	if d.url != nil {
		var err error
		if to, x.proxy.uri, err = d.pass.family.cutURL(d.url.String(&x.Request)); err != nil {
			x.logError(err.Error() + " in \"" + d.url.String(&x.Request) + "\"")
			return nil, http.StatusInternalServerError
		}
		if err = d.pass.family.checkTunnel(to); err != nil {
			x.logError(err.Error() + " in \"" + d.url.String(&x.Request) + "\"")
			return nil, http.StatusInternalServerError
		}
		if to.address == "" {
			x.logError("no host in upstream \"" + d.url.String(&x.Request) + "\"")
			return nil, http.StatusInternalServerError
		}
		x.proxy.host, x.proxy.port = to.host()
	}
	to.connectFrom(d.pass.settings(), &x.Request)
	g, err := d.groupOf(x, to)
	if err == nil {
		err = d.engine.lookUp(x.HTTP.Context(), g)
	}
	if err != nil {
		x.logError(err.Error())
		return nil, http.StatusBadGateway
	}
	handler, err := http.Handler(nil), error(nil)
	if err = d.identifyCertificate(&to); err == nil {
		handler, err = d.proxyFor(g, to)
	}
	if err != nil {
		x.logError(err.Error())
		return nil, http.StatusInternalServerError
	}
	return handler, 0
}

// identifyCertificate sets the ID of the certificate whose name has variables: its file may be another one since the last request.
func (d *dynamicPass) identifyCertificate(to *passTo) error {
	s := d.pass.settings()
	if to.sslCert == "" || to.sslKey == "" || s.sslCert.constant() {
		return nil
	}
	pair, err := d.engine.cachedPair(s.tls.cache, to.sslCert, to.sslKey, s.tls.passwords)
	if err == nil {
		to.sslID = pair.ID
	}
	return err
}

// proxyFor finds or creates the proxy of a group.
func (d *dynamicPass) proxyFor(g *group, to passTo) (http.Handler, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found, ok := d.proxies[to]; ok && found.group == g { // else that one has been closed for others
		return found.handler, nil
	}
	h, err := d.engine.newProxy(d.pass, g, to)
	if err != nil {
		return nil, err
	}
	if len(d.proxies) >= maxDynamic {
		clear(d.proxies)
	}
	d.proxies[to] = dynamicProxy{h, g}
	return h, nil
}

// groupOf finds the upstream of an address.
func (d *dynamicPass) groupOf(x *exchange, to passTo) (*group, error) {
	if g, ok := d.groups[to.address]; ok {
		return g, nil
	}
	if g, ok := d.groups[to.scheme+"://"+to.address]; ok {
		return g, nil
	}
	return d.engine.names.group(*resolverSlot.of(x.level), to)
}
