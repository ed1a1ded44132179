package stream

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// Port is one socket of a configuration, with the servers behind it. It is not changed when it serves.
type Port struct {
	// Name is the address as nginx writes it in its error log.
	Name string
	// UDP reports whether the socket receives datagrams.
	UDP bool
	// Host returns the servers of a local address of the socket.
	Host func(local netip.Addr) *Host
	// TLS is nil for cleartext. It must choose the client's server by ChooseByName.
	TLS *tls.Config
	// ProxyProtocol reports whether each connection begins with a header of the PROXY protocol.
	ProxyProtocol bool
	// Conns numbers the sessions.
	Conns *vars.Conns
}

// Host is the servers of one address.
type Host struct {
	// Default is the server of a client that names none, or one that is not known.
	Default *Server
	// Find returns the server of a name, which is in lower case, and the groups of the regular expression that was decisive. It
	// returns nil if there is none. The error is that of a regular expression.
	Find func(name string) (s *Server, groups, groupNames []string, err error)
}

// Server is one server block, with what it inherits. It is not changed when it serves.
type Server struct {
	// Name is $server_name.
	Name string
	// ErrorLog is where errors are logged.
	ErrorLog slog.Handler
	// ProxyProtocolTimeout, HandshakeTimeout and PrereadTimeout bound what their names say.
	ProxyProtocolTimeout, HandshakeTimeout, PrereadTimeout time.Duration
	// PrereadBuffer is how many bytes may be read to find the ClientHello.
	PrereadBuffer int
	// Preread reports whether the ClientHello of a client is read before the content.
	Preread bool
	// Trusted are the peers whose header of the PROXY protocol names the client.
	Trusted []netip.Prefix
	// TrustUnix adds the peers of unix sockets.
	TrustUnix bool
	// Set assigns the variables of set.
	Set func(s *Session)
	// Limit counts the session, and reports whether it may continue; leave, which is not nil, is called when it has ended.
	Limit func(s *Session) (leave func(), ok bool)
	// Allowed reports whether the client may connect.
	Allowed func(s *Session) bool
	// Verify checks the client's certificate; nil if none is required.
	Verify func(s *Session) error
	// Content serves the session; nil closes it.
	Content Content
	// Log writes the access logs.
	Log func(s *Session)
}

// Content is what a server does with its sessions.
type Content interface {
	// serve runs until the session is over, and returns its $status; passed is what Pass returns.
	serve(ctx context.Context, s *Session) (status int)
}

// Env is what sessions need of the process.
type Env struct {
	// Pass hands a connection to the socket of the configuration that listens at an address, and reports whether there is one.
	Pass func(to Address, c net.Conn) bool
}

// Address is an address of TCP, or a unix socket if there is a path.
type Address struct {
	netip.AddrPort
	Path string
}

// The statuses of a session.
const (
	statusOK          = 200
	statusBadRequest  = 400
	statusForbidden   = 403
	statusFailed      = 500
	statusBadGateway  = 502
	statusUnavailable = 503
	passed            = -1 // the connection is another session's, and nothing is logged
)

// Limit bounds the datagrams of c, which has just been accepted, by what its server says (proxy_requests). It is for the function
// of Packets.Serve.
func (p *Port) Limit(c *PacketConn) {
	if proxy, ok := p.Host(c.ends.local.Addr()).Default.Content.(*Proxy); ok {
		c.Limit(proxy.Requests)
	}
}

// Accept returns the session of a connection that was accepted. Limits and access are decided at once, in the order of the calls,
// unless they depend on a header of the PROXY protocol. The session must be served.
func (p *Port) Accept(env *Env, c net.Conn) *Session {
	s := p.newSession(env, c)
	udp := ""
	if s.udp {
		udp = "udp "
	}
	s.logPlain(levelInfo, udp+"client "+s.remote+" connected to "+p.Name)
	if !p.ProxyProtocol {
		s.enterContained()
	}
	return s
}

// enterContained is enter on the goroutine that accepts.
func (s *Session) enterContained() {
	defer s.contain()
	s.refused = statusFailed // behind a panic
	s.refused = s.enter()
}

// Serve serves the session and closes its connection. It returns when the session has ended. ctx cuts it off.
func (s *Session) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = s.raw.Close() })
	defer stop()
	defer s.contain()
	s.run(ctx)
}
