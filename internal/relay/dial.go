package relay

import (
	"context"
	"net"
)

// Dial makes a connection, as wsupgrade.Options.Dial and DialTLS do.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// dialKey is the context key of how the target of an outbound request is dialled.
type dialKey struct{}

type dials struct{ plain, tls Dial }

// WithDial returns a context of an outbound request with which package wsupgrade dials by plain, or by tls for a URL of a
// secure scheme, if a Forwarder has no Dial of its own.
func WithDial(ctx context.Context, plain, tls Dial) context.Context {
	return context.WithValue(ctx, dialKey{}, dials{plain, tls})
}

// DialOf returns what ctx was given by WithDial, nil for nothing.
func DialOf(ctx context.Context) (plain, tls Dial) {
	d, _ := ctx.Value(dialKey{}).(dials)
	return d.plain, d.tls
}
