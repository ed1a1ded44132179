package client

import (
	"context"
	"net"
	"net/http"
	"net/netip"
)

// Ends are the two ends of the connection by which a request was received, as the PROXY protocol names them.
type Ends struct {
	// Own reports whether no client has sent the request: the program itself has made it, for a health check for instance.
	Own bool
	// Client is the client's end; not valid if it is not known. Its port is 0 if trusted proxies have named the address.
	Client netip.AddrPort
	// Server is the end of this program; not valid if it is not known.
	Server netip.AddrPort
}

// EndsOf returns the ends of r.
func EndsOf(r *http.Request) Ends {
	local, served := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	info := From(r.Context())
	e := Ends{Own: !served && info == nil && r.RemoteAddr == ""}
	switch {
	case info == nil:
		e.Client, _ = netip.ParseAddrPort(r.RemoteAddr)
	case info.Addr.IsValid():
		e.Client = netip.AddrPortFrom(info.Addr, 0)
	}
	switch a := local.(type) {
	case nil:
	case interface{ AddrPort() netip.AddrPort }:
		e.Server = a.AddrPort()
	default:
		e.Server, _ = netip.ParseAddrPort(a.String())
	}
	return e
}

type endsKey struct{}

// WithEnds returns a copy of ctx that carries e, for those who make a connection for a request.
func WithEnds(ctx context.Context, e Ends) context.Context {
	return context.WithValue(ctx, endsKey{}, e)
}

// EndsFrom returns the Ends that ctx carries. Without any, a connection is the program's own.
func EndsFrom(ctx context.Context) Ends {
	if e, ok := ctx.Value(endsKey{}).(Ends); ok {
		return e
	}
	return Ends{Own: true}
}
