package engine

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
)

// listenRule is one listen directive.
type listenRule struct {
	addr          netip.AddrPort
	defaultServer bool
	ssl           bool
	http2         bool
	at            *conf.Directive
}

// listen compiles "listen address[:port] [parameters]".
func listen(c *compiler, l *level, d *conf.Directive) error {
	addrs, err := listenAddrs(d)
	if err != nil {
		return err
	}
	rule := listenRule{at: d}
	for _, p := range d.Args[1:] {
		if err := rule.parameter(p); err != nil {
			return err
		}
	}
	for _, addr := range addrs {
		rule.addr = addr
		for _, have := range l.server.listens {
			if have.addr == addr {
				return d.Errorf("a duplicate listen %s", d.Args[0])
			}
		}
		l.server.listens = append(l.server.listens, rule)
	}
	return nil
}

// parameter takes one parameter. Those that tune the socket have no effect.
func (r *listenRule) parameter(p string) error {
	name, _, _ := strings.Cut(p, "=")
	switch name {
	case "default_server", "default":
		r.defaultServer = true
	case "ssl":
		r.ssl = true
	case "http2":
		r.http2 = true
	case "reuseport", "backlog", "rcvbuf", "sndbuf", "deferred", "bind", "so_keepalive", "fastopen", "setfib":
	case "ipv6only":
		if p != "ipv6only=on" {
			return r.at.Errorf("parameter \"%s\" of \"listen\" is not supported by culvert yet", p)
		}
	case "proxy_protocol", "quic", "multipath", "accept_filter":
		return r.at.Errorf("parameter \"%s\" of \"listen\" is not supported by culvert yet", p)
	default:
		return r.at.Errorf("invalid parameter \"%s\"", p)
	}
	return nil
}

// listenAddrs reads the address: a port, an address, both, or a host's name
// with all its addresses.
func listenAddrs(d *conf.Directive) ([]netip.AddrPort, error) {
	text := d.Args[0]
	if strings.HasPrefix(text, "unix:") {
		return nil, d.Errorf("a unix socket in \"%s\" of the \"listen\" directive is not supported by culvert yet", text)
	}
	host, port := text, "80"
	switch i := strings.LastIndexByte(text, ':'); {
	case strings.Trim(text, "0123456789") == "":
		host, port = "*", text
	case i >= 0 && !strings.HasSuffix(text, "]"):
		host, port = text[:i], text[i+1:]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, d.Errorf("invalid port in \"%s\" of the \"listen\" directive", text)
	}
	ips, err := listenIPs(host)
	if err != nil {
		return nil, d.Errorf("host not found in \"%s\" of the \"listen\" directive", text)
	}
	var addrs []netip.AddrPort
	for _, ip := range ips {
		addrs = append(addrs, netip.AddrPortFrom(ip, uint16(n)))
	}
	return addrs, nil
}

func listenIPs(host string) ([]netip.Addr, error) {
	if host == "*" {
		return []netip.Addr{netip.IPv4Unspecified()}, nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	found, err := net.LookupIP(host)
	if err != nil {
		return nil, err
	}
	var ips []netip.Addr
	for _, f := range found {
		if ip, ok := netip.AddrFromSlice(f); ok {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips, nil
}
