package stream

import (
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// packetSocket reads and writes datagrams with the local address that they were sent to, if the socket is bound to all of them.
type packetSocket struct {
	udp   *net.UDPConn
	local netip.AddrPort
	v4    *ipv4.PacketConn // nil: there is one local address, or it is one of IPv6
	v6    *ipv6.PacketConn
}

func newPacketSocket(c *net.UDPConn) packetSocket {
	s := packetSocket{udp: c, local: unmap(c.LocalAddr().(*net.UDPAddr).AddrPort())}
	switch {
	case !s.local.Addr().IsUnspecified():
	case s.local.Addr().Is4():
		if p := ipv4.NewPacketConn(c); p.SetControlMessage(ipv4.FlagDst, true) == nil { // else the system chooses the sender
			s.v4 = p
		}
	default:
		if p := ipv6.NewPacketConn(c); p.SetControlMessage(ipv6.FlagDst, true) == nil {
			s.v6 = p
		}
	}
	return s
}

// read returns the length of a datagram, and its ends.
func (s *packetSocket) read(b []byte) (n int, e ends, err error) {
	var from net.Addr
	e.local = s.local
	switch {
	case s.v4 != nil:
		var m *ipv4.ControlMessage
		if n, m, from, err = s.v4.ReadFrom(b); m != nil {
			e.local = s.at(m.Dst)
		}
	case s.v6 != nil:
		var m *ipv6.ControlMessage
		if n, m, from, err = s.v6.ReadFrom(b); m != nil {
			e.local = s.at(m.Dst)
		}
	default:
		n, e.client, err = s.udp.ReadFromUDPAddrPort(b)
		e.client = unmap(e.client)
		return n, e, err
	}
	if udp, ok := from.(*net.UDPAddr); ok {
		e.client = unmap(udp.AddrPort())
	}
	return n, e, err
}

// at returns a local address of the socket.
func (s *packetSocket) at(ip net.IP) netip.AddrPort {
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return s.local
	}
	return netip.AddrPortFrom(addr.Unmap(), s.local.Port())
}

// write sends a datagram from the local end to the client.
func (s *packetSocket) write(b []byte, e ends) (int, error) {
	switch to := net.UDPAddrFromAddrPort(e.client); {
	case s.v4 != nil:
		return s.v4.WriteTo(b, &ipv4.ControlMessage{Src: e.local.Addr().AsSlice()}, to)
	case s.v6 != nil:
		return s.v6.WriteTo(b, &ipv6.ControlMessage{Src: e.local.Addr().AsSlice()}, to)
	default:
		return s.udp.WriteTo(b, to)
	}
}
