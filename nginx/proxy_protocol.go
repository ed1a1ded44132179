package nginx

import (
	"io"
	"net"
	"time"

	"github.com/pires/go-proxyproto"
)

// proxyListener accepts connections that begin with a header of the PROXY protocol. One
// without it is closed.
type proxyListener struct {
	net.Listener
	timeout time.Duration // of the header
}

func (l proxyListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return proxyConn{proxyproto.NewConn(conn, proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(l.timeout))}, nil
}

// proxyConn keeps the addresses of the connection itself, as nginx does: who its client is
// depends on set_real_ip_from.
type proxyConn struct{ *proxyproto.Conn }

func (c proxyConn) RemoteAddr() net.Addr { return c.Raw().RemoteAddr() }

func (c proxyConn) LocalAddr() net.Addr { return c.Raw().LocalAddr() }

// Read ends a connection without a header: http.Server would answer anything else with a
// 400, and whoever speaks no PROXY protocol is not to know that HTTP is spoken here.
func (c proxyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && err != nil && c.ProxyHeader() == nil {
		err = io.EOF
	}
	return n, err
}

// ProxyAddrs tells what the header says.
func (c proxyConn) ProxyAddrs() (client, server net.Addr) {
	h := c.ProxyHeader()
	if h == nil || h.Command.IsLocal() {
		return nil, nil
	}
	return h.SourceAddr, h.DestinationAddr
}
