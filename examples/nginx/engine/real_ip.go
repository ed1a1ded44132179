package engine

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
)

// realIPRule is who may say which client a request came from, and where
// (ngx_http_realip_module.c).
type realIPRule struct {
	from      []netip.Prefix
	field     string
	recursive bool
}

// setRealIPFrom compiles "set_real_ip_from address|CIDR|hostname|unix:".
func setRealIPFrom(_ *compiler, l *level, d *conf.Directive) error {
	if l.first("set_real_ip_from") {
		l.realIP.from = nil
	}
	if d.Args[0] == "unix:" {
		return nil // there are no such clients
	}
	if p, ok := network(d.Args[0]); ok {
		l.realIP.from = append(l.realIP.from, p)
		return nil
	}
	addresses, err := lookup(d.Args[0])
	if err != nil {
		return d.Errorf("host not found in set_real_ip_from \"%s\"", d.Args[0])
	}
	for _, text := range addresses {
		if p, ok := network(text); ok {
			l.realIP.from = append(l.realIP.from, p)
		}
	}
	return nil
}

// realIPHeader compiles "real_ip_header field".
func realIPHeader(_ *compiler, l *level, d *conf.Directive) error {
	if d.Args[0] == "proxy_protocol" {
		return d.Errorf("\"real_ip_header proxy_protocol\" is not supported by culvert yet")
	}
	l.realIP.field = d.Args[0]
	return nil
}

func realIPRecursive(_ *compiler, l *level, d *conf.Directive) error {
	l.realIP.recursive = d.Flag()
	return nil
}

// setRealIP makes the client's address the one that a trusted proxy tells.
func (x *exchange) setRealIP(rule *realIPRule) {
	at, err := netip.ParseAddrPort(x.HTTP.RemoteAddr)
	if err != nil || !rule.trusts(at.Addr()) {
		return
	}
	lines := x.HTTP.Header.Values(rule.field)
	var items []string
	for _, line := range lines {
		items = append(items, strings.FieldsFunc(line, func(c rune) bool { return c == ',' || c == ' ' })...)
	}
	found := false
	for _, item := range slices.Backward(items) {
		next, ok := address(item)
		if !ok {
			break
		}
		at, found = next, true
		if !rule.recursive || !rule.trusts(at.Addr()) {
			break
		}
	}
	if found {
		x.PeerAddr = x.HTTP.RemoteAddr
		x.HTTP.RemoteAddr = at.String()
	}
}

func (rule *realIPRule) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(rule.from, func(p netip.Prefix) bool { return p.Contains(a.Unmap().WithZone("")) })
}

// address reads one with or without a port.
func address(s string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at, true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return netip.AddrPortFrom(a, 0), err == nil
}
