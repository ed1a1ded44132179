package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/culvert-go/culvert/internal/http1"
)

// ownTLS is the TLS configuration of a target that has one of its own. Connections made by another one are not the target's: its
// pointer, or name in http.Transport, tells them apart.
type ownTLS struct {
	config *tls.Config
	name   string // for http.Transport, in the host of a URL
}

var ownTLSCount atomic.Uint64

// hasOwnTLS reports whether connections to t are made by another TLS configuration than the transport's.
func (t *Target) hasOwnTLS() bool {
	return t.Scheme == "https" && (t.TLSConfig != nil || t.ServerName != "")
}

// newOwnTLS returns t's own configuration, that of before if nothing has changed since; nil if t has none.
func newOwnTLS(t *Target, o *Options, before *member) any {
	if !t.hasOwnTLS() {
		return nil
	}
	if before != nil && before.hasOwnTLS() && before.TLSConfig == t.TLSConfig && before.ServerName == t.ServerName {
		return before.addr.TLS
	}
	config := t.TLSConfig
	if config == nil {
		config = o.TLSConfig
	}
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	if t.ServerName != "" {
		config.ServerName = t.ServerName
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(t.Addr)
	}
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return &ownTLS{config, fmt.Sprintf("tls-%d.invalid", ownTLSCount.Add(1))}
}

// tlsOf returns the configuration of connections to addr; standard is the transport's.
func tlsOf(addr http1.Addr, standard *tls.Config) *tls.Config {
	own, ok := addr.TLS.(*ownTLS)
	if !ok {
		return standard
	}
	config := own.config.Clone()
	config.NextProtos = standard.NextProtos
	return config
}

// withOwnHost returns r as http.Transport gets it: for a target with its own TLS configuration, with a host in the URL by which it
// keeps those connections apart from others to the same address.
func withOwnHost(r *http.Request) *http.Request {
	addr, ok := reachOf(r.Context())
	own, has := addr.TLS.(*ownTLS)
	if !ok || !has || r.URL.Scheme != "https" || r.URL.Host != hostOf(addr) {
		return r
	}
	again, u := *r, *r.URL
	if again.Host == "" {
		again.Host = u.Host
	}
	u.Host, again.URL = own.name, &u
	return &again
}

// addrOfHost returns the address that is meant by the host of a URL, with a port or not, in a context; ok is false if that
// is the host itself.
func addrOfHost(ctx context.Context, host string) (addr http1.Addr, ok bool) {
	if addr, ok = reachOf(ctx); !ok {
		return addr, false
	}
	if own, has := addr.TLS.(*ownTLS); has && (host == addr.Name || strings.TrimSuffix(host, ":443") == own.name) {
		return addr, true
	}
	return socketOf(ctx, host)
}

// reachKey is the context key of the address of a leased target that its host alone does not lead to.
type reachKey struct{}

// reachOf returns the address in ctx.
func reachOf(ctx context.Context) (addr http1.Addr, ok bool) {
	addr, ok = ctx.Value(reachKey{}).(http1.Addr)
	return addr, ok
}

// withReach returns a context with which hostOf(addr) can be dialled. If ctx has another address, it has that no more: its TLS
// configuration would be used for a host of the same name.
func withReach(ctx context.Context, addr http1.Addr) context.Context {
	if _, other := reachOf(ctx); !other && !addr.Unix && addr.TLS == nil {
		return ctx
	}
	return context.WithValue(ctx, reachKey{}, addr)
}

// checkReach returns an error if t can't be reached as it says, in a group of o.
func (t Target) checkReach(o *Options) error {
	switch {
	case t.Scheme != "http" && t.Scheme != "https":
		return fmt.Errorf("scheme %q is neither http nor https", t.Scheme)
	case o.Protocol == HTTP2 && t.Scheme != "https":
		return errors.New("HTTP2 needs the scheme https")
	case o.Protocol == H2C && t.Scheme != "http":
		return errors.New("H2C needs the scheme http")
	case t.Scheme == "http" && (t.ServerName != "" || t.TLSConfig != nil):
		return errors.New("ServerName and TLSConfig need the scheme https")
	}
	if err := checkServerName(t.ServerName); err != nil {
		return err
	}
	if c := o.Check; c != nil && c.GRPC && c.scheme(t.Scheme) != c.scheme(o.Scheme) {
		return errors.New("a target of another scheme than the group's can't have gRPC checks")
	}
	return checkBasePath(t.Path)
}

// checkServerName returns an error if no certificate can be verified for a name: each handshake would fail, as if the target were to
// blame.
func checkServerName(name string) error {
	if name == "" {
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	for _, c := range []byte(name) {
		if c >= utf8.RuneSelf {
			return fmt.Errorf("ServerName %q is not in ASCII", name)
		}
	}
	if err := checkName(name); err != nil {
		return fmt.Errorf("ServerName: %w", err)
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > maxLabel || len(name) > maxName {
			return fmt.Errorf("ServerName %q is too long", name)
		}
	}
	return nil
}

// The most bytes that a name in DNS may have, with a dot at its end, and each of its labels (RFC 1035 section 2.3.4).
const (
	maxName  = 254
	maxLabel = 63
)

// checkBasePath returns an error if path can't begin the path of a request.
func checkBasePath(path string) error {
	if path == "" {
		return nil
	}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return fmt.Errorf("path %q does not begin with one slash", path)
	}
	if strings.ContainsAny(path, "?#") {
		return fmt.Errorf("path %q has a query or a fragment", path)
	}
	if err := http1.CheckLine(http.MethodGet, "", path); err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	if _, err := url.PathUnescape(path); err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	return nil
}

// Target returns the target, with its defaults filled in. It must not be changed.
func (l Lease) Target() Target { return l.m.Target }

// checkSameReach returns an error if two targets have one address, whose health is one, and different ways to it.
func checkSameReach(list []Target) error {
	byAddr := make(map[string]*Target, len(list))
	for i := range list {
		t := &list[i]
		other := byAddr[t.Addr]
		if other != nil && (other.Scheme != t.Scheme || other.ServerName != t.ServerName || other.TLSConfig != t.TLSConfig) {
			return fmt.Errorf("target %q is given twice, with different Schemes, ServerNames or TLSConfigs", t.Addr)
		}
		byAddr[t.Addr] = t
	}
	return nil
}

// Way returns how requests reach the target: its Scheme, its Path, and whether the group's Transport and its method Dial need the
// context that Context returns, since the Host alone does not lead there.
func (l Lease) Way() (scheme, path string, byContext bool) {
	return l.m.Scheme, l.m.Path, l.m.addr.Unix || l.m.addr.TLS != nil
}
