package engine

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// socket is one socket with the servers behind it. A wildcard address includes the other
// addresses of its port, since the system binds only one of them; a connection's local address
// then selects among them.
type socket struct {
	addr          listenAddr
	ssl           bool
	http2         bool // HTTP/2 is spoken
	http2Always   bool // by listen, for all servers
	udp           bool // QUIC, or datagrams of stream
	quic          bool
	proxyProtocol bool
	hosts         map[netip.Addr]*virtual // the zero Addr for a unix socket

	servers []*server
}

// virtual is the servers of one address.
type virtual struct {
	names    *route.Names[*server]
	servers  []*server
	standard *server // default_server, or the first
	explicit bool    // there is a default_server
	tuned    bool    // a listen has socket options
}

// createListeners groups the servers by sockets and creates the Listeners.
func createListeners(c *compiler) error {
	var sockets []*socket
	for _, s := range c.servers {
		for _, rule := range s.listens {
			at := socketOf(c, &sockets, rule)
			at.ssl = at.ssl || rule.ssl || rule.quic
			at.quic = at.quic || rule.quic
			at.proxyProtocol = at.proxyProtocol || rule.proxyProtocol
			at.http2Always = at.http2Always || rule.http2
			if err := c.fail(at.attach(c, s, rule)); err != nil {
				return err
			}
		}
	}
	for _, k := range sockets {
		k.settleHTTP2()
		if err := c.fail(k.checkCertificates()); err != nil {
			return err
		}
		if k.quic {
			if err := c.fail(k.checkQUICVersions()); err != nil {
				return err
			}
		}
		config, err := k.tlsConfig(c)
		if err != nil {
			return err
		}
		if k.quic {
			c.engine.quic = append(c.engine.quic, k.quicListener(c.engine, config))
			continue
		}
		standard := k.host(k.addr.Addr()).standard.level
		conn := connectionSlot.of(standard)
		network, address := k.addr.forNet()
		c.engine.listeners = append(c.engine.listeners, Listener{
			Network:           network,
			Address:           address,
			TLS:               config,
			HTTP2:             k.http2,
			IdleTimeout:       keepaliveSlot.of(standard).timeout,
			ReadHeaderTimeout: conn.headerTimeout,
			MaxHeaderBytes:    conn.headerBytes,
			MaxStreams:        conn.maxStreams,
			ProxyProtocol:     k.proxyProtocol,
			ConnState:         c.engine.shared.counts.track,
			ConnContext:       c.engine.shared.conns.Context,
			Handler:           c.engine.handler(k),
		})
	}
	return nil
}

// settleHTTP2 sets http2. Without TLS the default server decides, since no other is known when a connection begins.
func (k *socket) settleHTTP2() {
	if !k.ssl {
		k.http2 = k.allowsHTTP2(k.host(k.addr.Addr()).standard)
		return
	}
	k.http2 = slices.ContainsFunc(k.servers, k.allowsHTTP2)
}

// allowsHTTP2 reports whether requests to a server may be sent by HTTP/2.
func (k *socket) allowsHTTP2(s *server) bool {
	return k.http2Always || connectionSlot.of(s.level).http2
}

// socketOf finds or creates the socket of a rule.
func socketOf(c *compiler, sockets *[]*socket, rule listenRule) *socket {
	bind := rule.addr
	for _, s := range c.servers {
		for _, other := range s.listens {
			if other.udp == rule.udp && other.addr.Port() == bind.Port() && other.addr.Addr().IsUnspecified() &&
				other.addr.Addr().Is4() == bind.Addr().Is4() {
				bind = other.addr
			}
		}
	}
	for _, k := range *sockets {
		if k.addr == bind && k.udp == rule.udp {
			return k
		}
	}
	k := &socket{addr: bind, udp: rule.udp, hosts: map[netip.Addr]*virtual{}}
	*sockets = append(*sockets, k)
	return k
}

// attach adds a server to an address.
func (k *socket) attach(c *compiler, s *server, rule listenRule) error {
	k.servers = append(k.servers, s)
	v := k.hosts[rule.addr.Addr()]
	if v == nil {
		v = &virtual{names: route.NewNames[*server](), standard: s}
		k.hosts[rule.addr.Addr()] = v
	}
	v.servers = append(v.servers, s)
	if rule.tuned {
		if v.tuned {
			return rule.at.Errorf("duplicate listen options for %s", rule.addr)
		}
		v.tuned = true
	}
	if rule.defaultServer {
		if v.explicit {
			return rule.at.Errorf("a duplicate default server for %s", rule.addr)
		}
		v.standard, v.explicit = s, true
	}
	for _, n := range s.names {
		if n.re != nil {
			v.names.AddPattern(n.re, s)
		} else if !v.names.Add(n.text, s) {
			c.engine.logger.Warn("conflicting server name \"" + n.text + "\" on " + rule.addr.String() + ", ignored")
		}
	}
	return nil
}

// host returns the servers of a local address.
func (k *socket) host(local netip.Addr) *virtual {
	if v, ok := k.hosts[local.Unmap()]; ok {
		return v
	}
	if v, ok := k.hosts[k.addr.Addr()]; ok {
		return v
	}
	for _, v := range k.hosts { // the only address, not a wildcard
		return v
	}
	return nil
}

// choose returns the server of a host name. With an error, which is that of a regular expression, it is the default one.
func (v *virtual) choose(host string) (route.Named[*server], error) {
	found, ok, err := v.names.Find(host)
	if !ok {
		found.To = v.standard
	}
	return found, err
}

// localIP returns the address that r's client connected to.
func localIP(r *http.Request) netip.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addrIP(addr)
}

func addrIP(addr net.Addr) netip.Addr {
	switch at := addr.(type) {
	case *net.TCPAddr:
		return at.AddrPort().Addr()
	case *net.UDPAddr: // of QUIC
		return at.AddrPort().Addr()
	}
	return netip.Addr{}
}

// hostName is requestHost for names that no request is refused for.
func hostName(field string) string {
	host := field
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
