package upstream

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// counted is a connection that knows its age and its requests. http.Transport
// has no limit for either (golang/go#23427).
type counted struct {
	net.Conn
	born     time.Time
	requests atomic.Int64
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

func dialCounted(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &counted{Conn: conn, born: time.Now()}, nil
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
func (l *limited) last(conn net.Conn) bool {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	c, ok := conn.(*counted)
	if !ok {
		return false
	}
	n := c.requests.Add(1)
	return l.requests > 0 && n >= l.requests || l.age > 0 && time.Since(c.born) >= l.age
}
