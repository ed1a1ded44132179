package engine

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// streamListenModule holds the sockets of stream.
var streamListenModule = module{
	directives: []directive{{name: "listen", repeatable: true, compile: streamListen}},
}

// notWithUDP are parameters of listen that are about connections.
var notWithUDP = []string{"fastopen", "backlog", "accept_filter", "deferred", "multipath", "ssl", "so_keepalive", "proxy_protocol"}

// streamListen compiles "listen address:port|unix:path [parameters]" inside stream.
func streamListen(_ *compiler, l *level, d *conf.Directive) error {
	addrs, err := streamListenAddrs(d)
	if err != nil {
		return err
	}
	rule := listenRule{at: d}
	for _, p := range d.Args[1:] {
		switch p {
		case "udp":
			rule.udp = true
		case "default", "http2", "quic":
			return d.Errorf("invalid parameter \"%s\"", p)
		default:
			if err := rule.parameter(p); err != nil {
				return err
			}
		}
	}
	if rule.udp {
		if name := parameterOf(d, notWithUDP); name != "" {
			return d.Errorf("\"listen\" directive \"%s\" parameter is incompatible with \"udp\"", name)
		}
		if addrs[0].path != "" {
			return d.Errorf("datagrams of unix sockets are not supported by culvert yet")
		}
	}
	if rule.dual && len(addrs) == 1 && addrs[0].Addr().Is6() {
		addrs = append(addrs, listenAddr{AddrPort: netip.AddrPortFrom(netip.IPv4Unspecified(), addrs[0].Port())})
	}
	return rule.listenOn(addrs, l.server)
}

// streamListenAddrs parses the address: a port or a range of ports, an address with one, or the path of a unix socket.
func streamListenAddrs(d *conf.Directive) ([]listenAddr, error) {
	text := d.Args[0]
	if isUnix(text) {
		addr, err := unixAddr(d)
		return []listenAddr{addr}, err
	}
	host, port := "*", text
	if strings.Trim(text, "0123456789-") != "" {
		if host, port = splitPort(text); port == "" {
			return nil, d.Errorf("no port in \"%s\" of the \"listen\" directive", text)
		}
	}
	first, last, fault := portRange(port)
	if fault != "" {
		return nil, d.Errorf("%s in \"%s\" of the \"listen\" directive", fault, text)
	}
	ips, err := listenIPs(host)
	if err != nil {
		return nil, d.Errorf("host not found in \"%s\" of the \"listen\" directive", text)
	}
	var addrs []listenAddr
	for n := first; n <= last; n++ {
		for _, ip := range ips {
			addrs = append(addrs, listenAddr{AddrPort: netip.AddrPortFrom(ip, uint16(n))})
		}
	}
	return addrs, nil
}

// parseAddrPort returns the address of a host that is one.
func parseAddrPort(host, port string) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return netip.AddrPort{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), err
}
