// Package client carries what is known of a request's client, once somebody who
// knows which proxies to trust has found it out.
package client

import (
	"context"
	"net/http"
	"net/netip"
)

// Info is the client behind the connection.
type Info struct {
	// Addr is the client's address.
	Addr netip.Addr
	// Via are the addresses between the client and the connection's other end,
	// the client's own first, as trusted proxies have told them. Empty if the
	// connection's other end is the client.
	Via []string
	// Proto is "http" or "https", as a trusted proxy says; "" if none does.
	Proto string
	// Host is the Host that a trusted proxy says the client asked for; "" if none
	// does.
	Host string
}

type key struct{}

// With returns a context that carries i.
func With(ctx context.Context, i *Info) context.Context { return context.WithValue(ctx, key{}, i) }

// From returns what ctx carries, nil if nobody has looked into it.
func From(ctx context.Context) *Info {
	i, _ := ctx.Value(key{}).(*Info)
	return i
}

// Addr returns the address of r's client: the one that With was given, or the
// connection's other end. It is the zero Addr if that can't be read.
func Addr(r *http.Request) netip.Addr {
	if i := From(r.Context()); i != nil {
		return i.Addr
	}
	return Peer(r)
}

// Peer returns the address of the connection's other end, an IPv4 address in its
// own form.
func Peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
