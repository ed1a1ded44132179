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

// conn is a connection that gives each write its time, and knows its age and its
// requests. http.Transport has a limit for neither (golang/go#23427).
type conn struct {
	net.Conn
	writeTimeout time.Duration // 0: no bound
	shared       bool          // HTTP/2: its writers wait for one another
	born         time.Time
	requests     atomic.Int64
	deadline     time.Time     // of writes; there is one writer
	ended        chan struct{} // closed when nothing more can be read
	endOnce      sync.Once
}

// Read notes the end.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.endOnce.Do(func() { close(c.ended) })
	}
	return n, err
}

// lastWords is how long a response may take to be read once nothing more can be
// written.
const lastWords = 200 * time.Millisecond

// Write moves the deadline only when less than its time is left: that is much
// cheaper than to set one for each write.
func (c *conn) Write(p []byte) (int, error) {
	if c.writeTimeout > 0 {
		if now := time.Now(); c.deadline.Sub(now) < c.writeTimeout {
			c.deadline = deadline.After(now, c.writeTimeout)
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

// waitForResponse holds a write's failure back: a target that responds early and closes makes writes fail while its
// response is there to be read, and http.Transport would take the failure for the response (golang/go#51109).
//
// A connection of HTTP/2 does not wait, since the transport writes with a mutex held that its other streams need, its
// reader of PING and SETTINGS among them. There the failure is left to the reader, which is always reading: it finds
// the end behind what the target has sent, and ends the streams that the target has not.
func (c *conn) waitForResponse() {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-c.ended:
		// What was read last is on its way through the transport.
		time.Sleep(lastWords / 20)
	case <-timer.C:
	}
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// DialError is the error of a connection that could not be made, TLS included. Of
// the request nothing was sent.
type DialError struct{ Err error }

// Error returns the cause's text.
func (e *DialError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// dialConn makes the transport's connections of dial's. They are shared by streams where that is known before a handshake.
func dialConn(dial dialer, writeTimeout time.Duration, shared bool) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &DialError{err}
		}
		return &conn{Conn: c, writeTimeout: writeTimeout, shared: shared, born: time.Now(), ended: make(chan struct{})}, nil
	}
}

// dialTLS speaks TLS over dial's connections. The transport would do it as well, and
// not tell a handshake that failed from a request that did.
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

// tlsConfig returns a configuration of the group's own that offers its protocol.
func tlsConfig(o Options) *tls.Config {
	c := o.TLSConfig.Clone()
	if c == nil {
		c = &tls.Config{}
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0) // a second connection costs no second handshake
	}
	c.NextProtos = []string{"http/1.1"}
	if o.Protocol == HTTP2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	return c
}

// limitConns makes t end connections that are too old or have had their requests.
func limitConns(t *http.Transport, o Options) http.RoundTripper {
	if o.MaxConnAge == 0 && o.MaxConnRequests == 0 {
		return t
	}
	return &limited{t, o.MaxConnAge, int64(o.MaxConnRequests)}
}

type limited struct {
	*http.Transport
	age      time.Duration
	requests int64
}

// RoundTrip lets the connection's last request say "Connection: close". The
// transport tells which connection it has chosen before it writes the head, on
// this goroutine.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	header := maps.Clone(r.Header) // r's may be that of other attempts, too
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		// A connection that ends just then is followed by another one, of which this
		// is not the last request.
		delete(header, "Connection")
		if l.last(info.Conn) {
			header["Connection"] = []string{"close"}
		}
	}}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	r.Header = header
	return l.Transport.RoundTrip(r)
}

// last counts a request and says whether it is the connection's last one.
func (l *limited) last(of net.Conn) bool {
	c := ownConn(of)
	if c == nil {
		return false
	}
	n := c.requests.Add(1)
	return l.requests > 0 && n >= l.requests || l.age > 0 && time.Since(c.born) >= l.age
}
