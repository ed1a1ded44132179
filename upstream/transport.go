package upstream

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/panics"
)

// Transport is an http.RoundTripper that runs exchanges with targets over connections that
// it keeps. A Group without Options.Transport has one of its own. NewTransport makes further
// ones, for gateways whose routes share a group's targets but need different timeouts or TLS
// configurations. It is safe for concurrent use by multiple goroutines.
//
// Package proxy uses the connections of a Transport whose targets speak HTTP/1.1 itself, at less than half the cost of
// RoundTrip, and so do active checks. That needs the *Transport: package proxy calls RoundTrip of an http.RoundTripper
// that wraps it, whose connections are others. To observe exchanges use proxy.Options.OnAttempt instead.
type Transport struct {
	o    Options
	http *http.Transport
	run  http.RoundTripper
	pool *http1.Pool // nil if the targets may speak another protocol

	closer idleCloser
}

// NewTransport returns a Transport. It uses the options Scheme, Protocol, TLSConfig,
// Dialer, DialContext, ProxyProtocol, and the timeouts and bounds of connections, and returns an error if
// an option is invalid.
func NewTransport(o Options) (*Transport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return newTransport(o), nil
}

// RoundTrip implements http.RoundTripper. The URL's host is the Host of a Lease, and the request's context
// is the one that Lease.Context returned. A panic of Options.DialContext, or of a function of
// Options.TLSConfig, for r is passed on to the caller.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = withOwnHost(r)
	if standsForSocket(r.URL.Host) { // an earlier lease's connection to it may be kept
		if _, ok := socketOf(r.Context(), r.URL.Host); !ok {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, &DialError{errNoSocket}
		}
	}
	return repanic(t.run.RoundTrip(t.o.withEnds(r)))
}

// CloseIdleConnections closes the connections that are idle now.
func (t *Transport) CloseIdleConnections() {
	t.http.CloseIdleConnections()
	if t.pool != nil {
		t.pool.CloseIdle()
	}
}

// HeaderBounds returns Options.HeaderTimeout, 0 for no bound, and Options.MaxHeaderBytes. Package proxy
// uses them to bound what net/http's transport does not: see Group.HeaderBounds.
func (t *Transport) HeaderBounds() (timeout time.Duration, size int64) {
	return max(0, t.o.HeaderTimeout), t.o.MaxHeaderBytes
}

// WriteBound returns Options.WriteTimeout, 0 for no bound. Package proxy uses it to bound the wait for
// an HTTP/2 window, which net/http's transport does not bound.
func (t *Transport) WriteBound() time.Duration { return max(0, t.o.WriteTimeout) }

// Dial dials a target. addr is the Host of a Lease, with a port added if that has
// none, and ctx is the context that Lease.Context returned. Options.DialTimeout
// bounds it.
func (t *Transport) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return t.o.dial(ctx, network, addr)
}

// TLSConfig returns Options.TLSConfig.
func (t *Transport) TLSConfig() *tls.Config { return t.o.TLSConfig }

func init() {
	http1.PoolOf = func(t http.RoundTripper) *http1.Pool {
		if t, ok := t.(*Transport); ok {
			return t.pool
		}
		return nil
	}
}

// newTransport returns a Transport by o, whose defaults are filled in.
func newTransport(o Options) *Transport { return newTransportWithin(o, 0) }

// newTransportWithin is newTransport for targets of which there may be any number. maxIdle bounds their idle connections
// together; 0 is no bound. net/http does not bound those of HTTP/2.
func newTransportWithin(o Options, maxIdle int) *Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(o.Protocol != H2C)
	protocols.SetHTTP2(o.Protocol == HTTP2)
	protocols.SetUnencryptedHTTP2(o.Protocol == H2C)
	own := dialConn(o.dial, max(0, o.WriteTimeout), o.Protocol == H2C)
	t := &http.Transport{
		DialContext:            recoverPanics(own),
		DialTLSContext:         recoverPanics(dialOwnTLS(own, tlsConfig(o), o.DialTimeout)),
		DisableCompression:     true,
		DisableKeepAlives:      o.ProxyProtocol != 0 && o.Protocol == HTTP1, // it would use a connection for another client
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    o.MaxIdleConns,
		IdleConnTimeout:        o.IdleTimeout,
		ExpectContinueTimeout:  http1.ExpectTimeout,
		ResponseHeaderTimeout:  max(0, o.HeaderTimeout),
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		ReadBufferSize:         4 << 10,
		WriteBufferSize:        32 << 10, // a small upload is sent in one write with its header
		Protocols:              &protocols,
		// Without pings only TCP detects a dead peer, after a quarter of an hour
		// (golang/go#36026).
		HTTP2: &http.HTTP2Config{SendPingTimeout: max(0, o.PingInterval), PingTimeout: max(0, o.PingInterval), WriteByteTimeout: max(0, o.WriteTimeout)},
	}
	if o.Protocol != HTTP1 {
		guardWindows(t)
	}
	made := &Transport{o: o, http: t, run: boundHead(passUnused(limitConns(t, o), o), o)}
	made.closer.close = made.CloseIdleConnections
	if o.Protocol == HTTP1 {
		made.pool = newPool(o, maxIdle)
	}
	return made
}

// newPool returns a pool of connections to HTTP/1.1 targets.
func newPool(o Options, maxIdle int) *http1.Pool {
	config := tlsConfig(o)
	return http1.NewPool(http1.Options{
		Addr: func(r *http.Request) (http1.Addr, error) {
			addr, err := addrOfRequest(r)
			if o.ProxyProtocol != 0 {
				addr.Preface = o.ProxyProtocol.preface(client.EndsOf(r))
			}
			return addr, err
		},
		Dial: func(ctx context.Context, addr http1.Addr) (net.Conn, error) {
			return o.dialTarget(ctx, addr, config)
		},
		Panicked: func(v any, stack []byte) {
			panics.Log(nil, "upstream.Options.DialContext, TLSConfig or a connection", v, stack)
		},
		MaxIdle:       o.MaxIdleConns,
		MaxIdleTotal:  maxIdle,
		IdleTimeout:   o.IdleTimeout,
		MaxAge:        o.MaxConnAge,
		MaxRequests:   o.MaxConnRequests,
		WriteTimeout:  max(0, o.WriteTimeout),
		HeaderTimeout: max(0, o.HeaderTimeout),
		MaxHeader:     int(min(o.MaxHeaderBytes, math.MaxInt)), // int has 32 bits on some systems
	})
}
