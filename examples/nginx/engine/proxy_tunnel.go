package engine

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/wsupgrade"
)

// forwarder forwards upgrades. nginx looks at no Origin, and neither does the
// example: the configuration decides what is forwarded.
func (e *Engine) forwarder(scheme string, s proxySettings) (*wsupgrade.Forwarder, error) {
	dial := dialer(s.connectTimeout)
	o := wsupgrade.Options{
		HandshakeTimeout: s.connectTimeout + s.readTimeout,
		CheckOrigin:      func(*http.Request) bool { return true },
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return endIdle(conn, s.readTimeout), nil
		},
	}
	if scheme == "https" {
		o.TLSConfig = upstreamTLS()
	}
	return wsupgrade.New(o)
}

// idleConn is an upstream's side of a tunnel that ends when nothing came or
// went for proxy_read_timeout.
type idleConn struct {
	*net.TCPConn // half-close included
	timeout      time.Duration
	timer        *time.Timer
}

func endIdle(conn net.Conn, timeout time.Duration) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok || timeout <= 0 {
		return conn
	}
	// a deadline in the past is seen as a timeout, and Close is left to the owner
	end := func() { _ = tcp.SetDeadline(time.Unix(1, 0)) }
	return &idleConn{TCPConn: tcp, timeout: timeout, timer: time.AfterFunc(timeout, end)}
}

func (c *idleConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		c.timer.Reset(c.timeout)
	}
	return n, err
}

func (c *idleConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	if n > 0 {
		c.timer.Reset(c.timeout)
	}
	return n, err
}

func (c *idleConn) Close() error {
	c.timer.Stop()
	return c.TCPConn.Close()
}
