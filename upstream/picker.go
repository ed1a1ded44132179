package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/culvert-go/culvert/internal/client"
)

// Picker picks a target for each request. A Group is one, of its targets, and so is a Dynamic, of those that the requests
// name. A program's own chooses among Groups, for a canary or for tenants, and calls the Pick of the one that it has chosen:
// every Lease is a Group's.
type Picker interface {
	// Pick returns a target for r that is not among the targets of tried, r's earlier leases. It may wait, not longer than
	// ctx lasts. The caller calls Done of the Lease. With an error there is to be none: package proxy gives
	// one back unused. An error that is a *culvert.Error, or wraps one, is the failure of the
	// exchange; any other is one of Kind Internal. Pick must be safe for concurrent use.
	Pick(ctx context.Context, r *http.Request, tried ...Lease) (Lease, error)
}

// Group returns the group whose target was picked.
func (l Lease) Group() *Group { return l.g }

// Dial makes a connection to the target, with TLS, and HTTP/1.1 alone offered by ALPN, if the scheme is https. The group's
// DialTimeout bounds it, and the handshake once more.
func (l Lease) Dial(ctx context.Context) (net.Conn, error) {
	o := l.g.o
	o.Protocol = HTTP1
	addr := l.m.addr // Secure, if the target's scheme is https
	addr.Preface = o.ProxyProtocol.preface(client.EndsFrom(ctx))
	return o.dialTarget(ctx, addr, tlsConfig(o))
}

// leaseKey is the context key of a Lease.
type leaseKey struct{}

var errNoLease = errors.New("upstream: Dial needs the context of a Lease")

// Dial calls the method Dial of the Lease whose Context ctx is, or descends from. network and addr are ignored. It is
// wsupgrade.Options.Dial and DialTLS for a proxy whose Upstream is not one Group.
func Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l, ok := ctx.Value(leaseKey{}).(Lease)
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errNoLease}
	}
	return l.Dial(ctx)
}
