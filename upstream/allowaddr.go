package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/culvert-go/culvert"
)

// globalUnicast has all addresses of IPv6 that networks are given (IANA's registry of the address space). What is elsewhere is
// special, reserved, or stands for an IPv4 address: 64:ff9b::/96 (RFC 6052) and ::ffff:0:0:0/96 (RFC 2765), for instance.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// notPublic are the networks of the IANA special-purpose address registries (RFC 6890) that are not reachable globally,
// multicast, those that lead to an IPv4 address inside of an IPv6 one, and the address at which Azure's hosts serve their
// machines (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
var notPublic = func() (list []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}()

// PublicAddr reports whether addr is a unicast address of the public internet: none of a private or shared network, of this
// host or its links, of documentation and tests, and none that stands for an IPv4 address (6to4, NAT64, Teredo). It is for
// Options.AllowAddr, where clients name the targets: cloud metadata at 169.254.169.254, for instance, is not public, nor is
// 168.63.129.16, by which Azure serves its machines.
//
// Public is not the same as foreign: the gateway's own public addresses are, and what trusts them.
func PublicAddr(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsValid() || addr.Zone() != "" || addr.Is6() && !globalUnicast.Contains(addr) {
		return false
	}
	for _, network := range notPublic {
		if network.Contains(addr) {
			return false
		}
	}
	return true
}

// errNotAllowed is why an address is not dialled.
func errNotAllowed(addr string) error {
	return &culvert.Error{Kind: culvert.Forbidden, Err: fmt.Errorf("upstream: Options.AllowAddr does not allow %s", addr)}
}

// guard has d call allow before it makes a connection. The address is the one that is connected to: a name's further
// resolution can't change it. The path of a unix socket is none.
func guard(d *net.Dialer, allow func(netip.Addr) bool) {
	before := d.ControlContext
	if control := d.Control; before == nil && control != nil {
		before = func(_ context.Context, network, address string, c syscall.RawConn) error {
			return control(network, address, c)
		}
	}
	d.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil || !allow(addr.Addr().Unmap()) {
			return errNotAllowed(address)
		}
		if before != nil {
			return before(ctx, network, address, c)
		}
		return nil
	}
}

// AllowAddr returns Options.AllowAddr.
func (g *Group) AllowAddr() func(netip.Addr) bool { return g.o.AllowAddr }

// AllowAddr returns Options.AllowAddr.
func (t *Transport) AllowAddr() func(netip.Addr) bool { return t.o.AllowAddr }

// AllowAddr returns the AllowAddr of DynamicOptions.Group.
func (d *Dynamic) AllowAddr() func(netip.Addr) bool { return d.o.Group.AllowAddr }

// checkAllowAddr returns an error if connections would not be made by a net.Dialer, which can be guarded.
func (o *Options) checkAllowAddr() error {
	if o.AllowAddr == nil {
		return nil
	}
	switch own, ok := o.Transport.(*Transport); {
	case o.DialContext != nil:
		return errors.New("AllowAddr with DialContext, which must look at its addresses itself")
	case o.Transport != nil && !(ok && own.o.AllowAddr != nil):
		return errors.New("AllowAddr with a Transport that has none")
	}
	return nil
}
