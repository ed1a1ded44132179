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

// Accept implements net.Listener.
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

// RemoteAddr returns the address of the peer, not that of the PROXY header.
func (c proxyConn) RemoteAddr() net.Addr { return c.Raw().RemoteAddr() }

// LocalAddr returns the address of this end, not that of the PROXY header.
func (c proxyConn) LocalAddr() net.Addr { return c.Raw().LocalAddr() }

// Read returns io.EOF for a connection without a header: a peer that does not speak the PROXY protocol must not learn that
// this is HTTP. net/http's server would send a 400 for any other error.
func (c proxyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 && err != nil && c.ProxyHeader() == nil {
		err = io.EOF
	}
	return n, err
}

// ProxyAddrs returns the addresses of the header, nil if it has none.
func (c proxyConn) ProxyAddrs() (client, server net.Addr) {
	h := c.ProxyHeader()
	if h == nil || h.Command.IsLocal() {
		return nil, nil
	}
	return h.SourceAddr, h.DestinationAddr
}
