package stream

import (
	"context"
	"net"
	"net/netip"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// Pass hands connections to another socket of the configuration, of stream or of http.
type Pass struct {
	// To is the address, if it is not To's value that says it.
	To *Address
	// Value evaluates to an address if To is nil.
	Value vars.Value
	// Parse parses a value.
	Parse func(text string) (Address, error)
}

// maxPasses bounds how often a connection is passed, against cycles (NGX_STREAM_PASS_MAX_PASSES).
const maxPasses = 10

// passedConn is a connection that was accepted at another address than it is served at.
type passedConn struct {
	earlyConn
	local  net.Addr
	passes int
}

// LocalAddr returns the address at which the connection is served.
func (c *passedConn) LocalAddr() net.Addr { return c.local }

func (p *Pass) serve(_ context.Context, s *Session) int {
	s.action = "passing connection to port"
	switch {
	case s.udp:
		s.Error("cannot pass udp connection")
		return statusFailed
	case s.TLS != nil && len(s.early) > 0:
		s.Error("cannot pass connection with preread data")
		return statusFailed
	}
	to := p.To
	if to == nil {
		address, err := p.Parse(p.Value.String(&s.Request))
		if err != nil {
			s.Error(err.Error())
			return statusFailed
		}
		to = &address
	}
	if s.failedPattern() {
		return statusFailed
	}
	if s.passes++; s.passes > maxPasses {
		s.Error("stream pass cycle")
		return statusFailed
	}
	c := &passedConn{earlyConn{Conn: s.conn, early: s.early}, to.addr(), s.passes}
	s.conn = nothing{} // the connection is not closed here
	if !s.env.Pass(*to, c) {
		s.conn = c.Conn
		s.Error("port not found for \"" + to.String() + "\"")
		return statusOK
	}
	return passed
}

// addr returns the address as one of package net.
func (a Address) addr() net.Addr {
	if a.Path != "" {
		return &net.UnixAddr{Name: a.Path, Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(a.AddrPort)
}

// String formats the address as nginx does.
func (a Address) String() string {
	if a.Path != "" {
		return unixPrefix + a.Path
	}
	return a.AddrPort.String()
}

// Matches reports whether a socket that listens at a is one for to: the same address, or the wildcard of its family and port.
func (a Address) Matches(to Address) bool {
	if a.Path != "" || to.Path != "" {
		return a.Path == to.Path
	}
	wildcard := a.Addr().IsUnspecified() && a.Port() == to.Port() && a.Addr().Is4() == to.Addr().Is4()
	return wildcard || a.AddrPort == to.AddrPort
}

// nothing is the connection of a session that has passed its own on.
type nothing struct{ net.Conn }

func (nothing) Close() error { return nil }

// unmap converts an IPv4 address in IPv6 to the IPv4 address.
func unmap(at netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) }
