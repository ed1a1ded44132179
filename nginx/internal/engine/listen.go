package engine

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// listenModule holds the sockets, and what applies to a connection before its server is known.
var listenModule = module{
	directives: []directive{
		{name: "client_header_timeout", compile: setDuration(connectionSlot, func(s *connectionSettings) *time.Duration { return &s.headerTimeout })},
		{name: "http2", compile: setFlag(connectionSlot, func(s *connectionSettings) *bool { return &s.http2 })},
		{name: "http2_max_concurrent_streams", compile: setNumber(connectionSlot, func(s *connectionSettings) *int { return &s.maxStreams })},
		{name: "large_client_header_buffers", compile: largeClientHeaderBuffers},
		{name: "max_headers", compile: setNumber(maxHeadersSlot, func(n *int) *int { return n })},
		{name: "listen", repeatable: true, compile: listen},
	},
}

// connectionSettings apply before the server of a connection's request is known: those of the
// default server.
type connectionSettings struct {
	lineBytes     int // large_client_header_buffers: of the request line
	headerBytes   int // of the whole header
	headerTimeout time.Duration
	http2         bool
	maxStreams    int // http2_max_concurrent_streams
}

var connectionSlot = newSlot(connectionSettings{lineBytes: 8 << 10, headerBytes: 32 << 10, headerTimeout: time.Minute, maxStreams: 128})

// maxHeadersSlot is how many fields a request may have.
var maxHeadersSlot = newSlot(1000)

// listenRule is one listen directive.
type listenRule struct {
	addr          listenAddr
	defaultServer bool
	ssl           bool
	http2         bool
	proxyProtocol bool
	quic          bool
	udp           bool // QUIC, or datagrams of stream
	dual          bool // ipv6only=off: IPv4 too
	tuned         bool // it has socket options, which only one listen may have
	at            *conf.Directive
}

// listen compiles "listen address[:port]|unix:path [parameters]".
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
	if rule.quic {
		if err := rule.checkQUIC(); err != nil {
			return err
		}
	}
	if first := addrs[0].Addr(); rule.dual && first.Is6() && first == addrs[len(addrs)-1].Addr() {
		for _, addr := range addrs {
			addrs = append(addrs, listenAddr{AddrPort: netip.AddrPortFrom(netip.IPv4Unspecified(), addr.Port())})
		}
	}
	return rule.listenOn(addrs, l.server)
}

// listenOn has s listen on the addresses.
func (r listenRule) listenOn(addrs []listenAddr, s *server) error {
	for _, addr := range addrs {
		r.addr = addr
		for _, have := range s.listens {
			if have.addr == addr && have.udp == r.udp && !r.dual {
				return r.at.Errorf("a duplicate listen %s", r.at.Args[0])
			}
		}
		s.listens = append(s.listens, r)
	}
	return nil
}

// parameter applies one parameter.
func (r *listenRule) parameter(p string) error {
	name, value, valued := strings.Cut(p, "=")
	switch name {
	case "default_server", "default":
		r.defaultServer = true
	case "ssl":
		r.ssl = true
	case "http2":
		r.http2 = true
	case "reuseport", "deferred", "bind", "so_keepalive", "setfib":
		r.tuned = true
	case "backlog", "rcvbuf", "sndbuf", "fastopen":
		r.tuned = true
		if !valued {
			return r.at.Errorf("invalid parameter \"%s\"", p)
		}
		if !tuning(name, value) {
			return r.at.Errorf("invalid %s \"%s\"", name, p)
		}
	case "ipv6only":
		r.tuned, r.dual = true, value == "off"
		if value != "on" && value != "off" {
			return r.at.Errorf("invalid parameter \"%s\"", p)
		}
	case "proxy_protocol":
		r.proxyProtocol = true
	case "quic":
		r.quic, r.udp = true, true
	case "multipath", "accept_filter":
		return r.at.Errorf("parameter \"%s\" of \"listen\" is not supported by culvert yet", p)
	default:
		return r.at.Errorf("invalid parameter \"%s\"", p)
	}
	return nil
}

// tuning reports whether value is valid for a parameter that tunes the socket. Such a parameter
// has no effect.
func tuning(name, value string) (ok bool) {
	switch name {
	case "backlog":
		n, ok := conf.Number(value)
		return ok && n > 0
	case "fastopen":
		_, ok = conf.Number(value)
	default:
		_, ok = conf.Size(value)
	}
	return ok
}

// listenAddrs parses the address: a port, an address, both, a host name (for all its addresses),
// or the path of a unix socket. A port may be a range, "8000-8010", with an address for each.
func listenAddrs(d *conf.Directive) ([]listenAddr, error) {
	text := d.Args[0]
	if isUnix(text) {
		addr, err := unixAddr(d)
		return []listenAddr{addr}, err
	}
	host, port := text, "80"
	switch i := strings.LastIndexByte(text, ':'); {
	case strings.Trim(text, "0123456789-") == "":
		host, port = "*", text
	case i >= 0 && !strings.HasSuffix(text, "]"):
		host, port = text[:i], text[i+1:]
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
	for _, ip := range ips {
		for n := first; n <= last; n++ {
			addrs = append(addrs, listenAddr{AddrPort: netip.AddrPortFrom(ip, uint16(n))})
		}
	}
	return addrs, nil
}

// portRange parses a port or a range of ports. The fault is "" if they are valid.
func portRange(text string) (first, last int, fault string) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	a, err := strconv.ParseUint(from, 10, 16)
	b, rangeErr := strconv.ParseUint(to, 10, 16)
	switch {
	case err != nil, rangeErr != nil, a == 0, b == 0:
		return 0, 0, "invalid port"
	case a > b:
		return 0, 0, "invalid port range"
	}
	return int(a), int(b), ""
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
