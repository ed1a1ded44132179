package upstream

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/http1"
)

// unixPrefix begins the Addr of a Target that is a unix socket. It has no such meaning elsewhere.
const unixPrefix = "unix:"

// addrOf parses a Target's Addr, which checkAddr has checked.
func addrOf(addr string) http1.Addr {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return http1.Addr{Unix: true, Name: path}
	}
	return http1.Addr{Name: addr}
}

// A unix socket's path can't be the host of a URL. A name takes its place there, by which
// http.Transport tells targets apart. The name alone can't be dialled: the socket's path is in the
// context of the lease's holder (withReach).
const (
	unixHost   = "unix-"
	unixDomain = ".invalid"
)

// hostOf returns the host for the address in a URL.
func hostOf(addr http1.Addr) string {
	if addr.Unix {
		return unixHost + hex.EncodeToString([]byte(addr.Name)) + unixDomain
	}
	return addr.Name
}

// standsForSocket reports whether host, with or without a port, is a name that hostOf makes for a
// unix socket, or one that http.Transport maps to such a name: it would use a connection to the
// socket that it has kept.
func standsForSocket(host string) bool {
	if name := strings.TrimPrefix(host, "["); name != "" && name[0] < utf8.RuneSelf && name[0]|0x20 != unixHost[0] {
		return false // the usual case
	}
	host = (&url.URL{Host: host}).Hostname() // brackets without a port, too
	if strings.ContainsFunc(host, func(c rune) bool { return c >= utf8.RuneSelf }) {
		if ascii, err := idna.Lookup.ToASCII(host); err == nil { // full-width letters, for instance
			host = ascii
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasPrefix(host, unixHost) && strings.HasSuffix(host, unixDomain)
}

// socketOf returns the unix socket of ctx, if host is its name.
func socketOf(ctx context.Context, host string) (addr http1.Addr, ok bool) {
	if !standsForSocket(host) {
		return addr, false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, ok = reachOf(ctx)
	return addr, ok && hostOf(addr) == host
}

// addrOfRequest returns the address of a request whose URL has the Host of a Lease.
func addrOfRequest(r *http.Request) (http1.Addr, error) {
	host, secure := r.URL.Host, r.URL.Scheme == "https"
	if socket := standsForSocket(host); secure || socket {
		if addr, ok := addrOfHost(r.Context(), host); ok {
			if addr.Secure = secure; !secure {
				addr.TLS = nil
			}
			return addr, nil
		}
		if !socket {
			return http1.Addr{Name: host, Secure: true}, nil
		}
	} else {
		return http1.Addr{Name: host}, nil
	}
	return http1.Addr{}, &DialError{errNoSocket}
}

var errNoSocket = errors.New("the name of a unix socket that was not leased")

// Dial dials a target. addr is the Host of a Lease, with a port added if that has
// none, and ctx is the context that Lease.Context returned. Options.DialTimeout
// bounds it.
func (g *Group) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return g.o.dial(ctx, network, addr)
}

// dial dials a target by the Host of a Lease.
func (o *Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, ok := addrOfHost(ctx, addr)
	if !ok {
		to.Name = addr
	}
	if !ok && standsForSocket(addr) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errNoSocket}
	}
	to.Preface = o.ProxyProtocol.preface(client.EndsFrom(ctx))
	return o.dialAddr(ctx, to)
}

// dialAddr dials an address, without TLS.
func (o *Options) dialAddr(ctx context.Context, addr http1.Addr) (net.Conn, error) {
	network := "tcp"
	if addr.Unix {
		network = "unix"
	}
	c, err := o.dialOne(ctx, network, addr.Name)
	if err != nil {
		return nil, err
	}
	return o.introduce(c, addr.Preface)
}

// errNilConn is the error for a DialContext that returns neither a connection nor an error.
var errNilConn = errors.New("upstream: Options.DialContext returned (nil, nil)")

// dialOne makes a connection, with DialContext if that is set.
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
	if o.AllowAddr != nil {
		guard(&d, o.AllowAddr)
	}
	return d.DialContext(ctx, network, addr)
}

// dialTarget dials an address, and makes the TLS handshake if its scheme is https. config is the transport's.
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
	if addr.Secure {
		return dialTLS(plain, tlsOf(addr, config), o.DialTimeout)(ctx, "tcp", host)
	}
	return plain(ctx, "tcp", host)
}

// checkTLS returns an error if t is a unix socket with TLS and no name for its certificate is given.
func (g *Group) checkTLS(t Target) error {
	if t.Scheme != "https" || !addrOf(t.Addr).Unix || t.ServerName != "" {
		return nil
	}
	c := t.TLSConfig
	if c == nil {
		c = g.o.TLSConfig
	}
	if c != nil && (c.ServerName != "" || c.InsecureSkipVerify) {
		return nil
	}
	return fmt.Errorf("target %q: %w", t.Addr, errors.New("https over a unix socket needs ServerName"))
}
