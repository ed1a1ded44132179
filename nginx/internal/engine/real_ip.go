package engine

import (
	"cmp"
	"net/netip"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// realIPModule takes the client's address from a trusted proxy (ngx_http_realip_module.c).
var realIPModule = module{
	directives: []directive{
		{name: "real_ip_header", compile: setText(realIPSlot, func(r *realIPRule) *string { return &r.field })},
		{name: "real_ip_recursive", compile: setFlag(realIPSlot, func(r *realIPRule) *bool { return &r.recursive })},
		{name: "set_real_ip_from", repeatable: true, compile: setRealIPFrom},
	},
	variables: map[string]variable{
		"realip_remote_addr": known(func(x *exchange) string { host, _ := peerOf(x); return host }),
		"realip_remote_port": known(func(x *exchange) string { _, port := peerOf(x); return port }),
	},
	active: func(l *level) bool { return len(realIPSlot.of(l).from) > 0 || realIPSlot.of(l).fromUnix },
	hooks:  hooks{postRead: setRealIP, preaccess: setRealIP},
}

var realIPSlot = newSlot(realIPRule{field: "X-Real-IP"})

// realIPRule is which peers are trusted to name the client of a request, and the field in which
// they do (ngx_http_realip_module.c).
type realIPRule struct {
	from      []netip.Prefix
	fromUnix  bool
	field     string
	recursive bool
}

// setRealIPFrom compiles "set_real_ip_from address|CIDR|hostname|unix:".
func setRealIPFrom(_ *compiler, l *level, d *conf.Directive) error {
	rule := realIPSlot.edit(l)
	if l.first("set_real_ip_from") {
		rule.from, rule.fromUnix = nil, false
	}
	if d.Args[0] == "unix:" {
		rule.fromUnix = true
		return nil
	}
	if p, ok := network(d.Args[0]); ok {
		rule.from = append(rule.from, p)
		return nil
	}
	addresses, err := lookup(d.Args[0])
	if err != nil {
		return d.Errorf("host not found in set_real_ip_from \"%s\"", d.Args[0])
	}
	for _, text := range addresses {
		if p, ok := network(text); ok {
			rule.from = append(rule.from, p)
		}
	}
	return nil
}

// setRealIP replaces the client's address with the one that a trusted proxy reports. Like nginx's
// module it runs when the server is known and again when the location is, before limits, access
// rules and content, and changes the address of a request once.
func setRealIP(x *exchange) int {
	rule := realIPSlot.of(x.level)
	if x.realIP.peer != "" || len(rule.from) == 0 && !rule.fromUnix {
		return 0
	}
	peer, err := netip.ParseAddrPort(x.HTTP.RemoteAddr) // that of a unix socket has none
	if err != nil && !(rule.fromUnix && overUnix(x)) || err == nil && !vars.Trusts(rule.from, peer.Addr()) {
		return 0
	}
	lines := x.HTTP.Header.Values(rule.field)
	if rule.field == proxyProtocolField {
		lines = proxyProtocolLines(x)
	}
	if at := vars.ForwardedTo(peer, lines, rule.from, rule.recursive); at != peer {
		x.realIP.peer = x.HTTP.RemoteAddr
		x.HTTP.RemoteAddr = at.String()
	}
	return 0
}

// realIPState is that of one request.
type realIPState struct {
	peer string // the connection's other end, if the client's address is one that it has reported; else ""
}

// peerOf returns the connection's other end.
func peerOf(x *exchange) (host, port string) {
	return vars.SplitAddr(cmp.Or(x.realIP.peer, x.HTTP.RemoteAddr))
}
