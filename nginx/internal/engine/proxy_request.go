package engine

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/internal/fieldnames"
	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
)

// upgradeFields are the Upgrade and Connection fields that a location sends. As in nginx, an
// upgrade to any protocol is forwarded if both request it; otherwise the upstream receives a
// plain request.
type upgradeFields struct{ upgrade, connection vars.Value }

// finishFields adds nginx's defaults to the proxy_set_header directives, and removes those that
// are not plain fields.
func (p *passRule) finishFields(c *compiler) error {
	host, err := c.value(p.at, "$proxy_host")
	if err != nil {
		return err
	}
	fields := []proxyField{{"Host", "Host", host, true}, {"Expect", "Expect", vars.Value{}, true}}
	seen := map[string]bool{}
	for _, f := range p.settings().fields {
		switch f.name {
		case "Upgrade":
			p.wants.upgrade = f.value
		case "Connection":
			p.wants.connection = f.value
		case "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Keep-Alive":
			// the framing is the proxy's: a wrong one smuggles a second request
		default:
			f.first = !seen[f.name]
			seen[f.name] = true
			fields = append(fields, f)
		}
	}
	p.fields = fields
	p.names = requestNames(p.settings().fields)
	return nil
}

// requestNames returns the names of the fields that nginx sends in front of the client's: Host, those of the configuration,
// and of its own those that are not among them (ngx_http_proxy_create_request).
func requestNames(given []proxyField) fieldnames.List {
	names := fieldnames.List{"Host"}
	for i, f := range given {
		again := func(later proxyField) bool { return later.name == f.name }
		if f.name == "Host" || f.name == "Connection" && slices.ContainsFunc(given[i+1:], again) { // the last one's value is sent
			continue
		}
		names = append(names, f.spelt)
	}
	for _, name := range []string{"Connection", "Content-Length", "Transfer-Encoding"} {
		if !names.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// inbound returns the request for the proxy: a plain one unless the configuration sends both
// upgrade fields.
func (p *passRule) inbound(x *exchange) *http.Request {
	if x.HTTP.Header["Upgrade"] == nil || p.forwardsUpgrade(x) {
		return x.HTTP
	}
	plain := x.HTTP.WithContext(x.HTTP.Context())
	plain.Header = x.HTTP.Header.Clone()
	plain.Header.Del("Upgrade")
	plain.Header.Del("Connection")
	return plain
}

// maxUpgradeBody is how many bytes of content wsupgrade forwards with an upgrade.
const maxUpgradeBody = 64 << 10

// forwardsUpgrade reports whether the location forwards the upgrade that the client requests. If
// the request has a body that the forwarder would refuse, or one of unknown length, it is sent as
// the plain request that it is as well.
func (p *passRule) forwardsUpgrade(x *exchange) bool {
	if p.settings().http2 {
		return false
	}
	protocol := x.HTTP.Header.Get("Upgrade")
	if n := x.HTTP.ContentLength; (n < 0 || n > maxUpgradeBody) && !strings.EqualFold(protocol, "websocket") {
		return false
	}
	return hasToken(p.wants.upgrade.String(&x.Request), protocol) && hasToken(p.wants.connection.String(&x.Request), "upgrade")
}

// hasToken reports whether the value of a directive, a comma-separated list, holds token.
func hasToken(list, token string) bool { return httpheader.HasToken([]string{list}, token) }

// rewrite applies the configuration to the outbound request.
func (p *passRule) rewrite(x *exchange, o *proxy.Outbound) {
	out := o.Out
	passFields := p.settings().passFields
	if !passFields {
		clearFields(out.Header)
	}
	// nginx passes on what the client claims, unless the configuration says otherwise; the proxy
	// has removed it
	if passFields {
		o.KeepForwarded()
	}
	if !p.settings().http2 { // to which the client's "trailers" may be passed on (RFC 9113 section 8.2.2)
		delete(out.Header, "Te")
	}
	for _, f := range p.fields {
		value := f.value.String(&x.Request)
		if f.name == "Host" {
			if value != "" { // else $proxy_host, which is the first
				out.Host = value
			}
			continue
		}
		if f.first {
			delete(out.Header, f.name)
		}
		if value != "" {
			out.Header[f.name] = append(out.Header[f.name], value)
		}
	}
	if options := p.wants.connection.String(&x.Request); options != "" && !p.settings().http2 {
		if options = withoutFields(options, out.Header); options != "" {
			out.Header["Connection"] = []string{options} // as the configuration spells it
		}
	}
	p.target(x, out.URL)
	o.FieldNames = slices.Insert(o.FieldNames, 0, p.names...)
}

// withoutFields returns what a Connection says beside h: its options but for the names of fields that the request has. The next
// proxy would drop these, such as X-Real-IP or Content-Length, and with $http_connection a client could name them.
func withoutFields(options string, h http.Header) string {
	names := func(option string) bool {
		name := http.CanonicalHeaderKey(strings.TrimSpace(option))
		return name != "Upgrade" && (h[name] != nil || name == "Transfer-Encoding" || httpheader.IsEndToEnd(name))
	}
	list := strings.Split(options, ",")
	if !slices.ContainsFunc(list, names) {
		return options
	}
	return strings.TrimSpace(strings.Join(slices.DeleteFunc(list, names), ","))
}

// clearFields removes all fields but those that the message's framing and an upgrade need.
func clearFields(h http.Header) {
	for name := range h {
		switch name {
		case "Connection", "Upgrade", "Content-Length", "Trailer":
		default:
			delete(h, name)
		}
	}
}

// target sets path and query (ngx_http_proxy_create_request). The client's target is sent
// unchanged until a rewrite or an internal redirect to another path; a redirect to a named
// location alone changes nothing.
func (p *passRule) target(x *exchange, u *url.URL) {
	switch {
	case p.url == "" && x.proxy.uri != "":
		setTarget(u, safe(x.proxy.uri))
	case p.hasURI && !x.uriRewritten:
		setTarget(u, withArgs(p.uri+outboundPath(x, len(p.level.name)), x.Args))
	case x.uriChanged || p.hasURI:
		setTarget(u, withArgs(outboundPath(x, 0), x.Args))
	default:
		target, _, _ := strings.Cut(x.RequestURI, "#")
		setTarget(u, target)
	}
}

// outboundPath returns the path without its first bytes, which the location's name stands for. It
// is escaped anew if the client had escaped anything; else it is sent as it was received.
func outboundPath(x *exchange, without int) string {
	rest := x.URI[min(without, len(x.URI)):]
	path, _ := route.Split(x.RequestURI)
	if x.Internal || strings.Contains(path, "%") {
		return route.Escape(rest)
	}
	return rest
}

func withArgs(path, args string) string {
	if args == "" {
		return path
	}
	return path + "?" + args
}

// setTarget gives u the bytes of a request target.
func setTarget(u *url.URL, target string) {
	path, query, has := strings.Cut(target, "?")
	u.RawQuery, u.ForceQuery = query, has && query == ""
	if decoded, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = decoded, path
		return
	}
	u.Opaque = path
}

// safe escapes what would end the request line early: a decoded variable like $uri may contain a
// line feed, which nginx sends unchanged.
func safe(target string) string {
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	var b strings.Builder
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			b.WriteString(route.Escape(target[i : i+1]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
