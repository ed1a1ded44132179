package engine

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/proxy"
)

// upgradeFields are the Upgrade and Connection fields that a location sends.
// An upgrade is forwarded, whatever its protocol is, if both say so, as in nginx: without them
// the upstream gets a plain request.
type upgradeFields struct{ upgrade, connection vars.Value }

// finishFields puts nginx's defaults beside the proxy_set_header that count,
// and takes those out that are not plain fields.
func (p *passRule) finishFields(c *compiler) error {
	host, err := c.value(p.at, "$proxy_host")
	if err != nil {
		return err
	}
	fields := []proxyField{{"Host", host, true}, {"Expect", vars.Value{}, true}}
	seen := map[string]bool{}
	for _, f := range p.level.proxy.fields {
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
	return nil
}

// inbound is the request as the proxy gets it: if the configuration does not
// send both upgrade fields it is a plain one.
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

// forwardsUpgrade reports whether the location sends the upgrade that the client asks for. One with
// a body that the forwarder would refuse, or of which the length is not known, is sent as the plain request that it is as well.
func (p *passRule) forwardsUpgrade(x *exchange) bool {
	protocol := x.HTTP.Header.Get("Upgrade")
	if n := x.HTTP.ContentLength; (n < 0 || n > maxUpgradeBody) && !strings.EqualFold(protocol, "websocket") {
		return false
	}
	return hasToken(p.wants.upgrade.String(&x.Request), protocol) && hasToken(p.wants.connection.String(&x.Request), "upgrade")
}

func hasToken(list, token string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(item), token) {
			return true
		}
	}
	return false
}

// rewrite makes the outbound request what the configuration says.
func (p *passRule) rewrite(x *exchange, o *proxy.Outbound) {
	out := o.Out
	if p.level.proxy.withoutFields {
		clearFields(out.Header)
	}
	// nginx passes what the client claims, unless the configuration says
	// otherwise; the proxy has taken it out
	if !p.level.proxy.withoutFields {
		o.KeepForwarded()
	}
	delete(out.Header, "Te")
	for _, f := range p.fields {
		value := f.value.String(&x.Request)
		if f.name == "Host" {
			out.Host = value
			continue
		}
		if f.first {
			delete(out.Header, f.name)
		}
		if value != "" {
			out.Header[f.name] = append(out.Header[f.name], value)
		}
	}
	if out.Header["Upgrade"] == nil && hasToken(p.wants.connection.String(&x.Request), "close") {
		out.Close = true
	}
	p.target(x, out.URL)
}

// clearFields leaves what the message's framing and an upgrade need.
func clearFields(h http.Header) {
	for name := range h {
		switch name {
		case "Connection", "Upgrade", "Content-Length", "Trailer":
		default:
			delete(h, name)
		}
	}
}

// target sets path and query (ngx_http_proxy_create_request). What the client has sent is sent
// as it is until a rewrite or a redirect inside the server to another path; a named location
// alone changes nothing.
func (p *passRule) target(x *exchange, u *url.URL) {
	switch {
	case p.url == "" && x.proxyURI != "":
		setTarget(u, safe(x.proxyURI))
	case p.hasURI && !x.elsewhere:
		setTarget(u, withArgs(p.uri+x.outboundPath(len(p.level.name)), x.Args))
	case x.uriChanged || p.hasURI:
		setTarget(u, withArgs(x.outboundPath(0), x.Args))
	default:
		target, _, _ := strings.Cut(x.RequestURI, "#")
		setTarget(u, target)
	}
}

// outboundPath is the path without the first bytes, which a location's name takes. It is
// escaped anew if the client had escaped anything; else it is sent as it was received.
func (x *exchange) outboundPath(without int) string {
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

// safe escapes what would end the request line early: a decoded variable like
// $uri may hold a line feed, and nginx sends it as it is.
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
