package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/panics"
)

// Transport runs exchanges with targets over connections that it keeps: what a
// Group without Options.Transport has of its own. One of NewTransport's serves
// gateways whose routes share a group's targets and want other timeouts, or
// another TLS configuration, each. It is safe for concurrent use.
type Transport struct {
	o    Options
	http *http.Transport
	run  http.RoundTripper
	pool *http1.Pool // nil where the targets may speak something else

	closer idleCloser
}

// NewTransport returns a Transport. Of the options Scheme, Protocol, TLSConfig,
// Dialer and the timeouts and bounds of connections count.
func NewTransport(o Options) (*Transport, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return newTransport(o), nil
}

// RoundTrip runs an exchange. The URL's host is a Lease's Host, and the request's context that of
// Lease.Context. It panics with what Options.DialContext, or a function of Options.TLSConfig, has panicked with for r.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if standsForSocket(r.URL.Host) { // there may be a kept connection to it, of a lease
		if _, ok := socketOf(r.Context(), r.URL.Host); !ok {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, &DialError{errNoSocket}
		}
	}
	return arrived(t.run.RoundTrip(r))
}

// CloseIdleConnections closes the connections that no exchange runs over.
func (t *Transport) CloseIdleConnections() {
	t.http.CloseIdleConnections()
	if t.pool != nil {
		t.pool.CloseIdle()
	}
}

// Pool is what package proxy runs exchanges over where the targets speak HTTP/1.1; nil
// elsewhere. RoundTrip has connections of its own.
func (t *Transport) Pool() *http1.Pool { return t.pool }

// HeaderBounds returns Options.HeaderTimeout, 0 for none, and Options.MaxHeaderBytes: package proxy bounds by them what
// net/http's transport does not.
func (t *Transport) HeaderBounds() (timeout time.Duration, size int64) {
	return max(0, t.o.HeaderTimeout), t.o.MaxHeaderBytes
}

// WriteBound returns Options.WriteTimeout, 0 for none: package proxy bounds by it the wait for a window of HTTP/2, which
// net/http's transport does not bound.
func (t *Transport) WriteBound() time.Duration { return max(0, t.o.WriteTimeout) }

// Dial dials a target: addr is the Host of a Lease, with a port where that has
// none, and ctx that of Lease.Context. Options.DialTimeout bounds it.
func (t *Transport) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return t.o.dial(ctx, network, addr)
}

// TLSConfig returns Options.TLSConfig.
func (t *Transport) TLSConfig() *tls.Config { return t.o.TLSConfig }

// newTransport returns a transport that forwards what it is given.
func newTransport(o Options) *Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(o.Protocol != H2C)
	protocols.SetHTTP2(o.Protocol == HTTP2)
	protocols.SetUnencryptedHTTP2(o.Protocol == H2C)
	own := dialConn(o.dial, max(0, o.WriteTimeout), o.Protocol == H2C)
	t := &http.Transport{
		DialContext:            carried(own),
		DialTLSContext:         carried(dialTLS(own, tlsConfig(o), o.DialTimeout)),
		DisableCompression:     true,
		MaxIdleConnsPerHost:    o.MaxIdleConns,
		IdleConnTimeout:        o.IdleTimeout,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  max(0, o.HeaderTimeout),
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		ReadBufferSize:         4 << 10,
		WriteBufferSize:        32 << 10, // a small upload goes out in one piece with its head
		Protocols:              &protocols,
		// Without pings a peer that has died is noticed by TCP alone, after a
		// quarter of an hour (golang/go#36026).
		HTTP2: &http.HTTP2Config{SendPingTimeout: max(0, o.PingInterval), PingTimeout: max(0, o.PingInterval), WriteByteTimeout: max(0, o.WriteTimeout)},
	}
	made := &Transport{o: o, http: t, run: boundHead(passUnused(limitConns(t, o), o), o)}
	made.closer.close = made.CloseIdleConnections
	if o.Protocol == HTTP1 {
		made.pool = newPool(o)
	}
	return made
}

// newPool returns the connections of HTTP/1.1 targets.
func newPool(o Options) *http1.Pool {
	config := tlsConfig(o)
	return http1.NewPool(http1.Options{
		Dial: func(ctx context.Context, addr http1.Addr) (net.Conn, error) {
			return o.dialTarget(ctx, addr, config)
		},
		Panicked: func(v any, stack []byte) {
			panics.Log(nil, "upstream.Options.DialContext or TLSConfig", v, stack)
		},
		MaxIdle:       o.MaxIdleConns,
		IdleTimeout:   o.IdleTimeout,
		MaxAge:        o.MaxConnAge,
		MaxRequests:   o.MaxConnRequests,
		WriteTimeout:  max(0, o.WriteTimeout),
		HeaderTimeout: max(0, o.HeaderTimeout),
		MaxHead:       int(o.MaxHeaderBytes),
	})
}
