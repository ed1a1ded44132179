package engine

import (
	"net/netip"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// streamServerModule holds the servers of stream and their names.
var streamServerModule = module{
	directives: []directive{
		{name: "server", repeatable: true},
		{name: "server_name", repeatable: true, compile: serverName, captures: nameCaptures},
	},
	blocks: compileStreamServers,
}

// compileStreamServers compiles the servers of stream.
func compileStreamServers(c *compiler, outer *level, list []*conf.Directive) error {
	for _, d := range list {
		if d.Name != "server" {
			continue
		}
		if err := c.fail(compileStreamServer(c, outer, d)); err != nil {
			return err
		}
	}
	return nil
}

func compileStreamServer(c *compiler, outer *level, d *conf.Directive) error {
	s := &server{engine: c.engine, level: outer.child(d)}
	s.level.server = s
	if err := c.block(s.level, d.Block); err != nil {
		return err
	}
	if len(s.listens) == 0 {
		return d.Errorf("no \"listen\" is defined for server")
	}
	if len(s.names) == 0 {
		s.names = []nameRule{{}}
	}
	preread, realIP, access := streamPrereadSlot.of(s.level), realIPSlot.of(s.level), accessSlot.of(s.level)
	s.stream = &stream.Server{
		Name:                 s.firstName(),
		ErrorLog:             *errorLogSlot.of(s.level),
		ProxyProtocolTimeout: preread.headerTimeout,
		HandshakeTimeout:     streamSSLSlot.of(s.level).handshakeTimeout,
		PrereadTimeout:       preread.timeout,
		PrereadBuffer:        int(preread.buffer),
		Preread:              preread.on,
		Trusted:              realIP.from,
		TrustUnix:            realIP.fromUnix,
		Set:                  setterOf(s.level),
		Limit:                sessionLimit(s.level),
		Verify:               sessionVerifier(s),
		Content:              *streamContentSlot.of(s.level),
		Log:                  sessionLog(s.level),
	}
	if len(access.rules) > 0 {
		s.stream.Allowed = func(session *stream.Session) bool {
			return access.check(session.Client(), session.OverUnix()) != refused
		}
	}
	c.servers = append(c.servers, s)
	return nil
}

// createPorts groups the servers by sockets.
func createPorts(c *compiler) error {
	var sockets []*socket
	for _, s := range c.servers {
		for _, rule := range s.listens {
			at := socketOf(c, &sockets, rule)
			at.ssl = at.ssl || rule.ssl
			at.proxyProtocol = at.proxyProtocol || rule.proxyProtocol
			if err := c.fail(at.attach(c, s, rule)); err != nil {
				return err
			}
		}
	}
	for _, k := range sockets {
		port, err := k.port(c)
		if err != nil {
			return err
		}
		network, address := k.addr.forNet()
		if k.udp {
			network = "udp" + network[len("tcp"):]
		}
		c.engine.streams = append(c.engine.streams, StreamListener{Network: network, Address: address, Port: port})
	}
	return nil
}

// port returns the socket for package stream.
func (k *socket) port(c *compiler) (*stream.Port, error) {
	config, err := k.streamTLS(c)
	if err != nil {
		return nil, err
	}
	hosts := map[*virtual]*stream.Host{}
	for _, v := range k.hosts {
		hosts[v] = v.host()
	}
	return &stream.Port{
		Name: k.addr.String(), UDP: k.udp, TLS: config, ProxyProtocol: k.proxyProtocol, Conns: c.engine.shared.conns,
		Host: func(local netip.Addr) *stream.Host { return hosts[k.host(local)] },
	}, nil
}

// host returns the servers of an address for package stream.
func (v *virtual) host() *stream.Host {
	return &stream.Host{
		Default: v.standard.stream,
		Find: func(name string) (s *stream.Server, groups, groupNames []string, err error) {
			found, ok, err := v.names.Find(name)
			switch {
			case !ok:
				return nil, nil, nil, err
			case found.Regexp == nil:
				return found.To.stream, nil, nil, nil
			}
			return found.To.stream, found.Groups, found.Regexp.Names(), nil
		},
	}
}
