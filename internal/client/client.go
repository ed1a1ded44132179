// Package client carries what is known of a request's client, in the request's context,
// from the filter that knows which proxies to trust (filters.RealIP) to its users.
package client

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Info describes the client behind the proxies that the connection comes from.
type Info struct {
	// Addr is the client's address.
	Addr netip.Addr
	// Via holds the client's address and those of the proxies between it and the
	// connection's peer, in this order, as trusted proxies have reported them. It is
	// empty if the peer is the client.
	Via []string
	// Proto is "http" or "https", as reported by a trusted proxy; "" if none reports it.
	Proto string
	// Host is the Host of the client's request, as reported by a trusted proxy; "" if
	// none reports it.
	Host string
}

type key struct{}

// With returns a copy of ctx that carries i.
func With(ctx context.Context, i *Info) context.Context { return context.WithValue(ctx, key{}, i) }

// From returns the Info that ctx carries, nil if it carries none.
func From(ctx context.Context) *Info {
	i, _ := ctx.Value(key{}).(*Info)
	return i
}

// Addr returns the address of r's client: that of the Info in r's context, or else that of
// the connection's peer. It is the zero Addr if r.RemoteAddr is not an address and a port.
func Addr(r *http.Request) netip.Addr {
	if i := From(r.Context()); i != nil {
		return i.Addr
	}
	return Peer(r)
}

// Peer returns the address of the connection's peer. An IPv4-mapped IPv6 address is returned
// as the IPv4 address. It is the zero Addr if r.RemoteAddr is not an address and a port.
func Peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// Forwarded returns the values of X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto that describe r's client. They
// are of r's connection and of the Info in its context, never of its header. addrs is "" if r.RemoteAddr is not an address
// and a port.
func Forwarded(r *http.Request) (addrs, host, proto string) {
	host, proto = r.Host, "http"
	if peer, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		addrs = peer
	}
	if r.TLS != nil {
		proto = "https"
	}
	if i := From(r.Context()); i != nil {
		addrs = strings.Join(append(i.Via[:len(i.Via):len(i.Via)], addrs), ", ")
		if i.Host != "" {
			host = i.Host
		}
		if i.Proto != "" {
			proto = i.Proto
		}
	}
	return addrs, host, proto
}
