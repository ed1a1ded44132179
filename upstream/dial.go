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
)

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// A unix socket's path can't stand in a URL, so a name that can be turned back
// stands for it there.
const (
	unixHost   = "unix-"
	unixDomain = ".invalid"
)

// hostOf returns what stands for the address in a URL.
func hostOf(addr string) string {
	if path, ok := strings.CutPrefix(addr, unixPrefix); ok {
		return unixHost + hex.EncodeToString([]byte(path)) + unixDomain
	}
	return addr
}

// unixPath turns a name of hostOf, with a port, back into the path.
func unixPath(addr string) (path string, ok bool) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !strings.HasPrefix(host, unixHost) || !strings.HasSuffix(host, unixDomain) {
		return "", false
	}
	name, err := hex.DecodeString(host[len(unixHost) : len(host)-len(unixDomain)])
	return string(name), err == nil
}

// Dial dials a target: addr is the Host of a Lease, with a port where that has
// none. Options.DialTimeout bounds it.
func (g *Group) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return g.o.dial(ctx, network, addr)
}

func (o *Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 30 * time.Second}
	if o.Dialer != nil {
		d = *o.Dialer
	}
	d.Timeout = o.DialTimeout
	if path, ok := unixPath(addr); ok {
		network, addr, d.LocalAddr = "unix", path, nil
	}
	return d.DialContext(ctx, network, addr)
}

// dialTarget dials the Host of a Lease, TLS included where the targets speak it.
func (o *Options) dialTarget(ctx context.Context, addr string, config *tls.Config) (net.Conn, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr += ":80" // a unix socket's name, of which the port does not matter
	}
	plain := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := o.dial(ctx, network, addr)
		if err != nil {
			return nil, &DialError{err}
		}
		return c, nil
	}
	if o.Scheme == "https" {
		return dialTLS(plain, config, o.DialTimeout)(ctx, "tcp", addr)
	}
	return plain(ctx, "tcp", addr)
}

// checkTLS refuses a unix socket behind TLS whose certificate nothing names.
func (g *Group) checkTLS(t Target) error {
	c := g.o.TLSConfig
	if g.o.Scheme != "https" || !strings.HasPrefix(t.Addr, unixPrefix) || c != nil && (c.ServerName != "" || c.InsecureSkipVerify) {
		return nil
	}
	return fmt.Errorf("target %q: %w", t.Addr, errors.New("https over a unix socket needs TLSConfig.ServerName"))
}
