package upstream

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// conn is a connection that gives each write its time, and knows its age and its
// requests. http.Transport has a limit for neither (golang/go#23427).
type conn struct {
	net.Conn
	writeTimeout time.Duration // 0: no bound
	born         time.Time
	requests     atomic.Int64
}

func (c *conn) Write(p []byte) (int, error) {
	if c.writeTimeout > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(c.writeTimeout)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

func dialConn(dial dialer, writeTimeout time.Duration) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, writeTimeout: writeTimeout, born: time.Now()}, nil
	}
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
	delete(r.Header, "Connection") // of a try before this one
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if l.last(info.Conn) {
			r.Header["Connection"] = []string{"close"}
		}
	}}
	return l.Transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}

// last counts a request and says whether it is the connection's last one.
func (l *limited) last(of net.Conn) bool {
	if t, ok := of.(interface{ NetConn() net.Conn }); ok { // TLS
		of = t.NetConn()
	}
	c, ok := of.(*conn)
	if !ok {
		return false
	}
	n := c.requests.Add(1)
	return l.requests > 0 && n >= l.requests || l.age > 0 && time.Since(c.born) >= l.age
}
