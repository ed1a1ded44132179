package stream

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/proxyproto"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/stream/hello"
)

// Session is one connection of a client, or the datagrams that it sends from one port. It is used by its own goroutine alone,
// except for its counts.
type Session struct {
	vars.Request // whose Owner is the Session

	port   *Port
	host   *Host
	server *Server
	env    *Env
	udp    bool

	raw    net.Conn // as it was accepted
	conn   net.Conn // the client's bytes: raw, or TLS over it
	early  []byte   // what was read of conn and not used yet
	remote string   // address and port, or unix: and perhaps a path
	peer   string   // the connection's other end, if remote is what a proxy has said; else ""
	local  string

	header   proxyproto.Header // of the PROXY protocol
	named    bool              // header was received
	preread  *hello.Hello      // nil: none was read, or it was no TLS
	passes   int
	status   int
	refused  int    // the status by which limits or access have refused the session, 0 if they have not
	action   string // what the session does, for errors
	attempts []*attempt
	limit    string // $limit_conn_status
	leave    func() // undoes what limits have counted

	received, sent atomic.Int64 // bytes from and to the client
}

// newSession returns the session of a connection that was accepted at p.
func (p *Port) newSession(env *Env, c net.Conn) *Session {
	s := &Session{port: p, env: env, udp: p.UDP, raw: c, conn: c, action: "initializing session", leave: func() {}}
	s.Owner, s.Start, s.Conn = s, time.Now(), p.Conns.New(c)
	s.remote, s.local = clientName(c), localName(c)
	var ip netip.Addr
	if at, err := netip.ParseAddrPort(s.local); err == nil {
		ip = at.Addr()
	}
	s.host = p.Host(ip)
	s.server = s.host.Default
	if from, ok := c.(*passedConn); ok {
		s.passes = from.passes
	}
	return s
}

// clientName returns the client's address as nginx writes it (ngx_sock_ntop).
func clientName(c net.Conn) string {
	addr := c.RemoteAddr()
	if addr == nil || addr.Network() != "unix" && addr.Network() != "unixgram" {
		return unmapped(addr)
	}
	if name := addr.String(); !strings.HasPrefix(name, "@") {
		return unixPrefix + name
	}
	return unixPrefix // Go's prefix for a socket without a file
}

func localName(c net.Conn) string {
	addr := c.LocalAddr()
	if addr != nil && (addr.Network() == "unix" || addr.Network() == "unixgram") {
		return unixPrefix + addr.String()
	}
	return unmapped(addr)
}

// unmapped formats an IPv4 address of a dual-stack socket as such.
func unmapped(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	if at, err := netip.ParseAddrPort(addr.String()); err == nil {
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}
	return addr.String()
}

const unixPrefix = "unix:"

// OverUnix reports whether the client is connected over a unix socket.
func (s *Session) OverUnix() bool { return strings.HasPrefix(s.remote, unixPrefix) }

// Client returns the client's address, not valid over a unix socket.
func (s *Session) Client() netip.Addr {
	at, _ := netip.ParseAddrPort(s.remote)
	return at.Addr()
}

// SetLimitStatus sets $limit_conn_status.
func (s *Session) SetLimitStatus(status string) { s.limit = status }

// contain, deferred, ends the session if a function of the configuration panics: the other sessions are served still.
func (s *Session) contain() {
	if v := recover(); v != nil {
		s.logPlain(levelError, fmt.Sprintf("panic while %s: %v\n%s", s.action, v, debug.Stack()))
		_ = s.raw.Close()
	}
}

// run takes the session through its phases, logs it and closes its connection.
func (s *Session) run(ctx context.Context) {
	defer func() { _ = s.conn.Close() }()
	defer func() { s.leave() }()
	s.status = s.phases(ctx)
	s.leave() // before the log and the end of the connection, by which a client knows that there is room
	if s.status != passed && s.server.Log != nil {
		s.action = "logging session"
		s.server.Log(s)
	}
}

// phases returns the session's status.
func (s *Session) phases(ctx context.Context) int {
	if s.port.ProxyProtocol {
		if status := s.readHeader(); status != 0 {
			return status
		}
		s.refused = s.enter()
	}
	if s.refused != 0 {
		return s.refused
	}
	if s.port.TLS != nil {
		if status := s.handshake(ctx); status != 0 {
			return status
		}
	}
	if s.server.Preread && !s.udp {
		if status := s.readHello(); status != 0 {
			return status
		}
	}
	if s.server.Content == nil || s.failedPattern() {
		return statusFailed
	}
	return s.server.Content.serve(ctx, s)
}

// failedPattern reports whether a regular expression was given up, and logs it. What depends on it is not known.
func (s *Session) failedPattern() bool {
	err := s.TakeFailure()
	if err != nil {
		s.LogAt(levelAlert, err.Error())
	}
	return err != nil
}

// enter takes the session through the phases that need no bytes of it, and returns the status of a refusal, 0 for none.
func (s *Session) enter() int {
	s.findClient()
	if set := s.server.Set; set != nil {
		set(s)
	}
	if limit := s.server.Limit; limit != nil {
		leave, ok := limit(s)
		if !ok {
			return statusUnavailable
		}
		s.leave = sync.OnceFunc(leave)
	}
	if allowed := s.server.Allowed; allowed != nil && !allowed(s) {
		s.Error("access forbidden by rule")
		return statusForbidden
	}
	return 0
}

// findClient replaces the client's address by the one of the PROXY protocol's header, if the peer is trusted
// (ngx_stream_realip_module.c).
func (s *Session) findClient() {
	if !s.named || !s.header.Client.IsValid() {
		return
	}
	trusted := s.server.TrustUnix && s.OverUnix() || s.Client().IsValid() && vars.Trusts(s.server.Trusted, s.Client())
	if trusted {
		s.peer = s.remote
		s.remote = netip.AddrPortFrom(s.header.Client.Addr().Unmap(), s.header.Client.Port()).String()
	}
}

// TLSState returns the state of the client's connection, nil for cleartext.
func (s *Session) TLSState() *tls.ConnectionState { return s.TLS }
