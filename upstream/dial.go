package upstream

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// unixPrefix begins the Addr of a Target that is a unix socket. It means that there and nowhere
// else.
const unixPrefix = "unix:"

// addrOf parses a Target's Addr, which checkAddr has checked.
func addrOf(addr string) http1.Addr {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return http1.Addr{Unix: true, Name: path}
	}
	return http1.Addr{Name: addr}
}

// A unix socket's path can't stand in a URL, so a name stands for it there, by which
// http.Transport tells targets apart. The name alone leads nowhere: what is dialled is in the
// context of who has leased the target (withSocket).
const (
	unixHost   = "unix-"
	unixDomain = ".invalid"
)

// hostOf returns what stands for the address in a URL.
func hostOf(addr http1.Addr) string {
	if addr.Unix {
		return unixHost + hex.EncodeToString([]byte(addr.Name)) + unixDomain
	}
	return addr.Name
}

// standsForSocket reports whether host, with or without a port, is such a name.
func standsForSocket(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, unixHost) && strings.HasSuffix(host, unixDomain)
}

// socketKey is the context key of the path of a unix socket that was leased.
type socketKey struct{}

// withSocket returns a context by which hostOf(addr) can be dialled.
func withSocket(ctx context.Context, addr http1.Addr) context.Context {
	if !addr.Unix {
		return ctx
	}
	return context.WithValue(ctx, socketKey{}, addr)
}

// socketOf returns the unix socket of ctx, if host stands for it.
func socketOf(ctx context.Context, host string) (addr http1.Addr, ok bool) {
	if !standsForSocket(host) { // as nearly all
		return addr, false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, ok = ctx.Value(socketKey{}).(http1.Addr)
	return addr, ok && hostOf(addr) == host
}

var errNoSocket = errors.New("the name of a unix socket that was not leased")

// Dial dials a target: addr is the Host of a Lease, with a port where that has
// none, and ctx that of Lease.Context. Options.DialTimeout bounds it.
func (g *Group) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return g.o.dial(ctx, network, addr)
}

// dial is for those who know a target by its Host.
func (o *Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if socket, ok := socketOf(ctx, addr); ok {
		return o.dialAddr(ctx, socket)
	}
	if standsForSocket(addr) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errNoSocket}
	}
	return o.dialOne(ctx, network, addr)
}

// dialAddr dials an address.
func (o *Options) dialAddr(ctx context.Context, addr http1.Addr) (net.Conn, error) {
	if addr.Unix {
		return o.dialOne(ctx, "unix", addr.Name)
	}
	return o.dialOne(ctx, "tcp", addr.Name)
}

// errNilConn is the error of a DialContext that gives neither a connection nor an error.
var errNilConn = errors.New("upstream: Options.DialContext returned (nil, nil)")

// dialOne makes a connection, over DialContext where that is set.
func (o *Options) dialOne(ctx context.Context, network, addr string) (net.Conn, error) {
	if o.DialContext != nil {
		ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
		defer cancel()
		c, err := o.DialContext(ctx, network, addr)
		if c == nil && err == nil {
			return nil, errNilConn
		}
		return c, err
	}
	d := net.Dialer{KeepAlive: 30 * time.Second}
	if o.Dialer != nil {
		d = *o.Dialer
	}
	d.Timeout = o.DialTimeout
	if network == "unix" {
		d.LocalAddr = nil
	}
	return d.DialContext(ctx, network, addr)
}

// dialTarget dials an address, TLS included where the targets speak it.
func (o *Options) dialTarget(ctx context.Context, addr http1.Addr, config *tls.Config) (net.Conn, error) {
	plain := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := o.dialAddr(ctx, addr)
		if err != nil {
			return nil, &DialError{err}
		}
		return c, nil
	}
	host := hostOf(addr)
	if addr.Unix {
		host += ":80" // the port does not matter
	}
	if o.Scheme == "https" {
		return dialTLS(plain, config, o.DialTimeout)(ctx, "tcp", host)
	}
	return plain(ctx, "tcp", host)
}

// checkTLS refuses a unix socket behind TLS whose certificate nothing names.
func (g *Group) checkTLS(t Target) error {
	c := g.o.TLSConfig
	if g.o.Scheme != "https" || !addrOf(t.Addr).Unix || c != nil && (c.ServerName != "" || c.InsecureSkipVerify) {
		return nil
	}
	return fmt.Errorf("target %q: %w", t.Addr, errors.New("https over a unix socket needs TLSConfig.ServerName"))
}
