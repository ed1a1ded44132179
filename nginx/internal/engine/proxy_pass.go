package engine

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// passRule is a proxy_pass.
type passRule struct {
	family  *family
	at      *conf.Directive
	level   *level
	url     string // scheme://host[:port], "" with variables
	to      passTo // where it leads without variables
	hostOf  string // $proxy_host
	portOf  string // $proxy_port
	uri     string // what replaces the location's name
	hasURI  bool
	proxy   http.Handler    // nil with variables
	dynamic *dynamicPass    // nil without variables
	fields  []proxyField    // header fields for the upstream, including defaults
	names   fieldnames.List // of those that are sent in front of the client's
	wants   upgradeFields
}

// errNoLive is the error of an attempt without a target.
var errNoLive = errors.New("no live upstreams")

// proxyState is that of one request.
type proxyState struct {
	host, port string      // $proxy_host and $proxy_port
	uri        string      // of a proxy_pass with variables
	responded  bool        // the response is an upstream's
	sticky     *stickyRule // of the upstream that was chosen last; nil: it has none
	failure    error       // why there is no response
	diverted   *diversion  // what is served instead of the upstream's response

	names  fieldnames.List // of the upstream's response, as it has spelt them
	reason string          // of its status line
	kept   fieldnames.List // of fields of a response that are kept for what is served instead

	dialled *heldConn // the connection for a tunnel
	target  string    // its other end

	body *replay.Again // the request's body, if it was read as a whole; nil: it was not
}

// passTo is where a request is sent, and what distinguishes its connection from others to the
// same place.
type passTo struct {
	scheme  string // http, or https if the connection is encrypted, with every protocol
	address string
	port    string // where address has none; "": it must have one
	sslName string
	sslCert string // files
	sslKey  string
	sslID   certID // of the certificate, if its name has variables
	bind    string
}

var passSlot = newLocalSlot[*passRule]()

// passTo compiles "proxy_pass URL". mergeProxy creates its proxy when the whole location is
// known.
func (f *family) passTo(c *compiler, l *level, d *conf.Directive) error {
	p := &passRule{family: f, at: d, level: l}
	v, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	*passSlot.edit(l) = p
	text, constant := v.Literal()
	if !constant {
		p.dynamic = &dynamicPass{url: &v}
		return nil
	}
	to, uri, err := f.cutURL(text)
	if err != nil {
		return d.Errorf("%s", err)
	}
	if to.address == "" {
		return d.Errorf("no host in upstream \"%s\"", uri)
	}
	p.to, p.uri, p.hasURI = to, uri, uri != ""
	if p.hasURI && (l.isPattern() || l.kind == namedLocation || l.condition) {
		return d.Errorf("\"%s\" cannot have URI part in location given by regular expression, "+
			"or inside named location, or inside \"if\" statement, or inside \"limit_except\" block", d.Name)
	}
	p.url = to.scheme + "://" + to.address
	p.hostOf, p.portOf = to.host()
	return nil
}

// urlScheme is how the URL of a pass directive may begin.
type urlScheme struct {
	prefix string // "http://"; "": an address alone
	secure bool
	port   string // where the address has none
}

// cutURL splits the URL of a pass directive. Only HTTP's has a URI.
func (f *family) cutURL(text string) (to passTo, uri string, err error) {
	for _, s := range f.schemes {
		if len(text) < len(s.prefix) || !strings.EqualFold(text[:len(s.prefix)], s.prefix) {
			continue
		}
		to = passTo{scheme: "http", address: text[len(s.prefix):], port: s.port}
		if s.secure {
			to.scheme = "https"
		}
		if f.uris {
			to.address, uri = cutURI(to.address)
		}
		return to, uri, nil
	}
	return to, "", errors.New("invalid URL prefix")
}

// cutURI splits an address off a URL without its scheme.
func cutURI(rest string) (address, uri string) {
	if strings.HasPrefix(rest, unixPrefix) {
		address, uri, _ = strings.Cut(rest[len(unixPrefix):], ":")
		return unixPrefix + address, uri
	}
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return rest, ""
	}
	if rest[i] != '/' {
		return rest[:i], "/" + rest[i:]
	}
	return rest[:i], rest[i:]
}

// host returns $proxy_host and $proxy_port: a standard port is not part of the host.
func (to passTo) host() (host, port string) {
	if strings.HasPrefix(to.address, unixPrefix) {
		return "localhost", ""
	}
	name, port := splitPort(to.address)
	switch port {
	case "":
		return to.address, to.port
	case to.port:
		return name, port
	}
	return to.address, port
}

// mergeProxy creates the proxy of a level's proxy_pass. The block of an if or a limit_except has
// that of its location unless it has one itself.
func mergeProxy(c *compiler, l *level) error {
	p := *passSlot.of(l)
	switch {
	case p == nil && l.condition:
		*passSlot.edit(l) = *passSlot.of(l.outer)
		return nil
	case p == nil:
		return nil
	}
	if err := p.finishRedirects(); err != nil {
		return err
	}
	if err := p.finishFields(c); err != nil {
		return err
	}
	return p.createProxy(c)
}

// createProxy creates the proxy, or what will create those of a proxy_pass with variables.
func (p *passRule) createProxy(c *compiler) error {
	s := p.settings()
	if p.dynamic == nil && (!isConstant(s.sslName) || !isConstant(s.bind) || !s.sslCert.constant()) {
		p.dynamic = &dynamicPass{}
	}
	if p.dynamic != nil {
		p.dynamic.init(c, p)
	}
	if p.url == "" {
		return nil
	}
	g, err := findGroup(c, p.at, p.to)
	if err != nil {
		return err
	}
	g.failsAt(s.failStatuses())
	if p.dynamic != nil {
		return nil
	}
	c.deferred = append(c.deferred, func() (err error) {
		to := p.to
		to.connectFrom(s, nil)
		p.proxy, err = c.engine.newProxy(p, g, to)
		return err
	})
	return nil
}

// connectFrom evaluates what the settings say of the connection. r is nil if there are no variables.
func (to *passTo) connectFrom(s *proxySettings, r *vars.Request) {
	to.sslName, to.bind = s.sslName.String(r), s.bind.String(r)
	if to.scheme == "https" {
		to.sslCert, to.sslKey = s.sslCert.cert.name(r), s.sslCert.key.name(r)
	}
}

func isConstant(v vars.Value) bool {
	_, constant := v.Literal()
	return constant
}

// findGroup returns the upstream that address names, or creates one for the host.
func findGroup(c *compiler, at *conf.Directive, to passTo) (*group, error) {
	if g, ok := c.groups[to.address]; ok {
		return g, nil
	}
	name := to.scheme + "://" + to.address // an upstream block can't have this name
	if g, ok := c.groups[name]; ok {
		return g, nil
	}
	targets, err := resolve(upstream.Target{}, at, to.address, to.port)
	if err != nil {
		return nil, err
	}
	g := newGroup(to.address)
	g.implicit, g.targets = true, targets
	c.groups[name] = g
	return g, nil
}

// settings are those of the level that p stands on.
func (p *passRule) settings() *proxySettings { return p.family.slot.of(p.level) }

// passSettings are those of the current level, which has a rule.
func (x *exchange) passSettings() *proxySettings {
	return (*passSlot.of(x.level)).family.slot.of(x.level)
}

// serveProxy sends the request to the upstream of the level.
func serveProxy(x *exchange, w http.ResponseWriter) (status int, done bool) {
	p := *passSlot.of(x.level)
	if p == nil {
		return 0, false
	}
	return p.serve(x, w), true
}

func (p *passRule) serve(x *exchange, w http.ResponseWriter) int {
	if p.family.tunnels && x.HTTP.Method != http.MethodConnect {
		return http.StatusMethodNotAllowed
	}
	handler := p.proxy
	x.proxy.host, x.proxy.port = p.hostOf, p.portOf
	if p.dynamic != nil {
		var status int
		if handler, status = p.dynamic.choose(x); status != 0 {
			return status
		}
	}
	if status := p.readBody(x, w); status != 0 {
		return status
	}
	x.proxy.responded, x.proxy.failure, x.proxy.diverted, x.proxy.sticky = true, nil, nil, nil
	handler.ServeHTTP(w, p.settings().reshape(x, p.inbound(x)))
	if to := x.proxy.diverted; to != nil {
		x.proxy.responded = false
		return to.serve(x, w)
	}
	if x.proxy.failure == nil {
		return 0
	}
	x.proxy.responded = false
	var e *culvert.Error
	if !errors.As(x.proxy.failure, &e) || e.Kind == culvert.NoTarget || e.Kind == culvert.Busy {
		return http.StatusBadGateway // nginx: no live upstreams
	}
	if e.Kind == culvert.UpgradeRequired {
		requireUpgrade(x, w.Header())
	}
	return e.Status()
}

// requireUpgrade sets the header of a 426 that names the required upgrade: a WebSocket in its
// only version (RFC 6455 section 4.4). HTTP/2 has no Upgrade.
func requireUpgrade(x *exchange, h http.Header) {
	h.Set("Sec-WebSocket-Version", "13")
	if x.HTTP.ProtoMajor == 1 {
		h.Set("Upgrade", "websocket")
		h.Set("Connection", "Upgrade")
	}
}

// newProxy creates the handler of p for a group.
func (e *Engine) newProxy(p *passRule, g *group, to passTo) (http.Handler, error) {
	o, err := e.proxyOptions(p, g, to)
	if err != nil {
		return nil, p.at.Errorf("%s", err)
	}
	return proxy.New(o)
}

func (e *Engine) proxyOptions(p *passRule, g *group, to passTo) (o proxy.Options, err error) {
	s, client := p.settings(), clientBodySlot.of(p.level)
	if o.Upstream, err = e.upstream(g, to.scheme); err != nil {
		return o, err
	}
	transport, err := e.transport(transportKey{
		scheme: to.scheme, http2: s.http2, connect: s.connectTimeout, send: s.sendTimeout, read: s.readTimeout, bind: to.bind,
		keepalive: g.keepaliveOver(s.http2), tls: s.tls, name: cmp.Or(to.sslName, to.name()), cert: to.sslCert, key: to.sslKey, certID: to.sslID,
	})
	if err != nil {
		return o, err
	}
	if o.Upgrades, err = e.forwarder(*s, transport); err != nil {
		return o, err
	}
	o.StreamRequest = s.buffers.streamed
	if o.ResponseBuffer, err = s.buffers.forResponse(); err != nil {
		return o, err
	}
	o.Transport = p.family.roundTripper(e, p, transport, g)
	o.KeepFieldNames = true
	o.OnAttempt = g.least.onAttempt()
	if !s.passTrailers {
		o.ResponseTrailer = func(string) bool { return false }
	}
	o.Retry = s.retryRule()
	o.BodyTimeout = s.readTimeout
	o.ReadTimeout, o.WriteTimeout = client.timeout, client.sendTimeout
	o.Rewrite = func(o *proxy.Outbound) {
		x := exchangeOf(o.In.Context())
		p.family.outbound(p, x, o)
		o.DropInterim = !x.earlyHints()
		if err := x.TakeFailure(); err != nil { // the upstream must not get what is not known to be right
			x.logPattern(err)
			o.Fail(err)
		}
	}
	if o.ModifyResponse = p.modifyResponse; p.family.tunnels {
		if o.ModifyResponse, err = e.openTunnel(s); err != nil {
			return o, err
		}
	}
	o.ErrorHandler = func(_ http.ResponseWriter, r *http.Request, err *culvert.Error) {
		x := exchangeOf(r.Context())
		x.proxy.failure = err
		lacksNext := p.lacksNext(o.Upstream, x, err)
		if lacksNext {
			x.logNoLive(g.name)
		}
		if lacksNext || err.Kind == culvert.NoTarget || err.Kind == culvert.Busy { // which nginx's variables show as a server
			x.Upstream.Attempts = append(x.Upstream.Attempts, culvert.Attempt{Target: g.name, Start: time.Now(), Err: errNoLive})
		}
		x.takeBody(r.Body)
	}
	o.OnError = func(r *http.Request, err *culvert.Error) { logProxy(exchangeOf(r.Context()), g.name, err) }
	return o, nil
}

// name returns what the certificate of an upstream is for, unless a directive says otherwise.
func (to passTo) name() string {
	host, _ := to.host()
	return host
}
