package nginx

import (
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/culvert-go/culvert/internal/proxyproto"
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
	return proxyConn{proxyproto.NewConn(conn, l.timeout)}, nil
}

// proxyConn has the addresses of the connection itself, as in nginx: who its client is
// depends on set_real_ip_from.
type proxyConn struct{ *proxyproto.Conn }

// Read returns io.EOF for a connection without a header: a peer that does not speak the PROXY protocol must not learn that
// this is HTTP. net/http's server would send a 400 for any other error.
func (c proxyConn) Read(p []byte) (int, error) {
	if _, err := c.Header(); err != nil {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// ProxyAddrs returns the addresses of the header, nil if it has none.
func (c proxyConn) ProxyAddrs() (client, server net.Addr) {
	h, err := c.Header()
	if err != nil {
		return nil, nil
	}
	return addrOf(h.Client), addrOf(h.Server)
}

// ProxyTLVs returns what follows the addresses in the header.
func (c proxyConn) ProxyTLVs() string {
	h, _ := c.Header()
	return h.TLVs
}

// addrOf returns nil for an address that is not valid.
func addrOf(a netip.AddrPort) net.Addr {
	if !a.IsValid() {
		return nil
	}
	return net.TCPAddrFromAddrPort(a)
}
