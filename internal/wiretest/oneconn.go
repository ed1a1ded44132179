package wiretest

import (
	"net"
	"sync/atomic"
)

// OneConn returns a listener that accepts conn, perhaps one end of a pipe, and no other connection. The Serve of a server returns
// then, and the connection is served on; the server's Close closes it.
func OneConn(conn net.Conn) net.Listener { return &oneConn{conn: conn} }

type oneConn struct {
	conn     net.Conn
	accepted atomic.Bool
}

func (l *oneConn) Accept() (net.Conn, error) {
	if l.accepted.Swap(true) {
		return nil, net.ErrClosed
	}
	return l.conn, nil
}

func (l *oneConn) Close() error { return nil }

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
