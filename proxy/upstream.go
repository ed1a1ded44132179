package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Balance is the way in which an upstream picks a target.
type Balance int

const (
	// RoundRobin is nginx's smooth weighted round robin.
	RoundRobin Balance = iota
	// IPHash keeps a client with its target by its address: the first three
	// bytes of an IPv4 address, the whole of an IPv6 address. It chooses as
	// nginx's ip_hash does (ngx_http_upstream_ip_hash_module.c), so that one
	// can replace the other. Backup targets are not allowed with it.
	IPHash
)

// UpstreamOptions configures an Upstream. The zero value is a round robin over
// cleartext HTTP.
type UpstreamOptions struct {
	// Name stands in errors and records where no target was chosen.
	Name string
	// Scheme is "http" or "https"; "" means "http".
	Scheme string
	// Balance picks among the targets.
	Balance Balance
	// Transport runs the exchanges. nil means an http.Transport of the
	// upstream's own, which adds nothing to a request (no compression) and
	// takes no proxy from the environment.
	Transport http.RoundTripper
	// TLSConfig is for https targets. nil verifies the target's certificate
	// against the system's roots and the host of its address.
	TLSConfig *tls.Config
	// DialTimeout bounds the dialling of one target; 0 means 10 seconds.
	DialTimeout time.Duration
}

// Upstream is a named group of targets with their health. It is safe for
// concurrent use, and several proxies may share one.
type Upstream struct {
	name      string
	scheme    string
	tlsConfig *tls.Config
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	transport http.RoundTripper
	owned     *http.Transport // closed by Close; nil if the caller brought its own
	peers     *peers
}

// NewUpstream checks the options and the targets and returns the upstream. An
// error names the upstream and the target.
func NewUpstream(o UpstreamOptions, targets ...Target) (*Upstream, error) {
	fail := func(format string, args ...any) (*Upstream, error) {
		return nil, fmt.Errorf("proxy: upstream %q: %w", o.Name, fmt.Errorf(format, args...))
	}
	if o.Scheme == "" {
		o.Scheme = "http"
	}
	if o.Scheme != "http" && o.Scheme != "https" {
		return fail("scheme %q is neither http nor https", o.Scheme)
	}
	if o.DialTimeout < 0 {
		return fail("negative DialTimeout %v", o.DialTimeout)
	}
	peers, err := newPeers(o.Balance, targets)
	if err != nil {
		return fail("%w", err)
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 10 * time.Second
	}
	u := &Upstream{name: o.Name, scheme: o.Scheme, tlsConfig: o.TLSConfig, transport: o.Transport, peers: peers}
	u.dial = (&net.Dialer{Timeout: o.DialTimeout, KeepAlive: 30 * time.Second}).DialContext
	if u.transport == nil {
		u.owned = newTransport(u.dial, o.TLSConfig)
		u.transport = u.owned
	}
	return u, nil
}

// Close closes the idle connections of the upstream's own transport. Exchanges
// that run are not touched.
func (u *Upstream) Close() error {
	if u.owned != nil {
		u.owned.CloseIdleConnections()
	}
	return nil
}

// newTransport returns a transport that forwards what it is given.
func newTransport(dial func(context.Context, string, string) (net.Conn, error), tlsConfig *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        60 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ReadBufferSize:         4 << 10,
		WriteBufferSize:        4 << 10,
	}
}
