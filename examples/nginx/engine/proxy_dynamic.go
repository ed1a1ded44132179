package engine

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/culvert-go/culvert/examples/nginx/engine/vars"
	"github.com/culvert-go/culvert/upstream"
)

// maxDynamic bounds the upstreams that a proxy_pass with variables makes.
const maxDynamic = 256

// dynamicPass is a proxy_pass with variables: its URL is evaluated for each
// request and must name an upstream block or an address. Names would need a
// resolver.
type dynamicPass struct {
	url    vars.Value
	pass   *passRule
	engine *Engine
	groups map[string]*group // the upstream blocks

	mu      sync.Mutex
	proxies map[string]http.Handler // by scheme://address
}

func (d *dynamicPass) init(c *compiler, p *passRule) {
	d.pass, d.engine, d.groups = p, c.engine, c.groups
	d.proxies = map[string]http.Handler{}
}

// choose evaluates the URL. A status says that it leads nowhere.
func (d *dynamicPass) choose(x *exchange) (http.Handler, int) {
	text := d.url.String(&x.Request)
	scheme, address, uri, err := cutURL(text)
	if err != nil {
		x.logError(err.Error() + " in \"" + text + "\"")
		return nil, http.StatusInternalServerError
	}
	x.proxyURI = uri
	x.ProxyHost, x.ProxyPort = proxyHost(scheme, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	key := scheme + "://" + address
	if h, ok := d.proxies[key]; ok {
		return h, 0
	}
	g := d.groupOf(scheme, address)
	if g == nil {
		x.logError("no resolver defined to resolve " + address)
		return nil, http.StatusBadGateway
	}
	h, err := d.engine.newProxy(d.pass, g, scheme)
	if err != nil {
		x.logError(err.Error())
		return nil, http.StatusInternalServerError
	}
	if len(d.proxies) >= maxDynamic {
		clear(d.proxies)
	}
	d.proxies[key] = h
	return h, 0
}

// groupOf finds the upstream of an address; nil if it is a name that no
// upstream block has.
func (d *dynamicPass) groupOf(scheme, address string) *group {
	if g, ok := d.groups[address]; ok {
		return g
	}
	host, port := splitPort(address)
	if port == "" {
		_, port = proxyHost(scheme, address)
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return nil
	}
	target := upstream.Target{Addr: joinHostPort(ip, port)}
	return &group{name: address, targets: []upstream.Target{target}, schemes: map[string]*upstream.Group{}}
}

func joinHostPort(ip netip.Addr, port string) string {
	if ip.Is6() {
		return "[" + ip.String() + "]:" + port
	}
	return ip.String() + ":" + port
}
