package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

// conn is a connection that bounds the time of each write, and counts its age and
// its requests. http.Transport has a limit for neither (golang/go#23427).
type conn struct {
	net.Conn
	writeTimeout time.Duration // 0: no bound
	shared       bool          // by the streams of HTTP/2, whose writers wait for one another
	created      time.Time
	requests     atomic.Int64
	deadline     time.Time     // of writes; there is one writer
	readEnded    chan struct{} // closed when a Read has failed
	endOnce      sync.Once
}

// Read implements net.Conn. It closes c.readEnded when it fails.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.endOnce.Do(func() { close(c.readEnded) })
	}
	return n, err
}

// earlyResponseWait bounds how long a failed write waits for a response to be read.
const earlyResponseWait = 200 * time.Millisecond

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.writeTimeout > 0 {
		if until := deadline.Extend(c.deadline, c.writeTimeout); !until.Equal(c.deadline) {
			c.deadline = until
			if err := c.SetWriteDeadline(c.deadline); err != nil {
				return 0, err
			}
		}
	}
	n, err := c.Conn.Write(p)
	switch {
	case !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET):
		return n, err
	case c.shared:
		return len(p), nil
	}
	c.waitForResponse()
	return n, err
}

// waitForResponse delays a write's failure. Writes to a target that responds early and closes fail
// while its response can still be read, and http.Transport would return the failure in place of the
// response (golang/go#51109).
//
// A connection of HTTP/2 does not wait: the transport writes while it holds a mutex that its other
// streams need, and so does its reader of PING and SETTINGS. There the failure is left to the reader,
// which is always reading: it finds the end after what the target has sent, and fails the streams that
// the target has not ended.
func (c *conn) waitForResponse() {
	timer := time.NewTimer(earlyResponseWait)
	defer timer.Stop()
	select {
	case <-c.readEnded:
		// The transport has yet to process what was read last.
		time.Sleep(earlyResponseWait / 20)
	case <-timer.C:
	}
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// DialError is the error of a connection that could not be made, its TLS handshake
// included. Nothing of the request was sent.
type DialError struct {
	// Err is the cause.
	Err error
}

// Error returns the cause's text.
func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// dialConn returns a dialer that wraps dial's connections in conn. shared is true where streams share
// each connection and that is known before a handshake.
func dialConn(dial dialer, writeTimeout time.Duration, shared bool) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &DialError{err}
		}
		return &conn{Conn: c, writeTimeout: writeTimeout, shared: shared, created: time.Now(), readEnded: make(chan struct{})}, nil
	}
}

// dialTLS returns a dialer of TLS connections over dial's. The transport could make the
// handshake itself, but its errors do not tell a failed handshake from a failed request.
func dialTLS(dial dialer, config *tls.Config, timeout time.Duration) dialer {
	return func(ctx context.Context, network, addr string) (made net.Conn, err error) {
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		defer func() {
			if made == nil { // also where a function of config panics
				raw.Close()
			}
		}()
		own := config.Clone()
		if own.ServerName == "" {
			own.ServerName, _, _ = net.SplitHostPort(addr)
		}
		c := tls.Client(raw, own)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := c.HandshakeContext(ctx); err != nil {
			return nil, &DialError{err}
		}
		if own, ok := raw.(*conn); ok && c.ConnectionState().NegotiatedProtocol == "h2" {
			own.shared = true
		}
		return c, nil
	}
}

// dialOwnTLS is dialTLS for targets that may have their own configuration.
func dialOwnTLS(dial dialer, config *tls.Config, timeout time.Duration) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		own := config
		if to, ok := addrOfHost(ctx, addr); ok {
			own = tlsOf(to, config)
		}
		return dialTLS(dial, own, timeout)(ctx, network, addr)
	}
}

// tlsConfig returns a copy of o.TLSConfig that offers o's protocol by ALPN.
func tlsConfig(o Options) *tls.Config {
	c := o.TLSConfig.Clone()
	if c == nil {
		c = &tls.Config{}
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0) // a second connection resumes the first one's session
	}
	c.NextProtos = []string{"http/1.1"}
	if o.Protocol == HTTP2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return c
}

// limitConns returns t with a limit on the age and the number of requests of its connections.
func limitConns(t *http.Transport, o Options) http.RoundTripper {
	if o.MaxConnAge <= 0 && o.MaxConnRequests == 0 {
		return t
	}
	return &limited{t, o.MaxConnAge, int64(o.MaxConnRequests)}
}

type limited struct {
	*http.Transport
	age      time.Duration
	requests int64
}

// RoundTrip implements http.RoundTripper. A connection's last request has
// "Connection: close": the transport calls GotConn before it writes the header, on
// this goroutine.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	header := maps.Clone(r.Header) // other attempts may share r's
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		// If a connection ends just then, the transport chooses another one, of which
		// this need not be the last request.
		delete(header, "Connection")
		if l.countRequest(info.Conn) {
			header["Connection"] = []string{"close"}
		}
	}}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	r.Header = header
	return l.Transport.RoundTrip(r)
}

// countRequest counts a request of a connection, and reports whether it is the last one.
func (l *limited) countRequest(of net.Conn) bool {
	c := ownConn(of)
	if c == nil {
		return false
	}
	n := c.requests.Add(1)
	return l.requests > 0 && n >= l.requests || l.age > 0 && time.Since(c.created) >= l.age
}
