package wiretest

import (
	"net"
	"sync/atomic"
)

// Counted returns conn, which takes 1 from open when it is closed.
func Counted(conn net.Conn, open *atomic.Int64) net.Conn { return countedConn{conn, open} }

type countedConn struct {
	net.Conn
	open *atomic.Int64
}

func (c countedConn) Close() error {
	c.open.Add(-1)
	return c.Conn.Close()
}
