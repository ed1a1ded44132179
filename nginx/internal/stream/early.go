package stream

import (
	"net"
	"time"
)

// earlyConn is a connection of which some bytes have been read already.
type earlyConn struct {
	net.Conn
	early   []byte
	session *Session // for ChooseByName
}

// Read implements net.Conn.
func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.early)
	if c.early = c.early[n:]; len(c.early) == 0 {
		c.early = nil
	}
	return n, nil
}

// CloseWrite sends the end of the bytes, if the connection can.
func (c *earlyConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below.
func (c *earlyConn) NetConn() net.Conn { return c.Conn }

// readMore reads more of the client's first bytes, at most until limit bytes are waiting, before a deadline.
func (s *Session) readMore(limit int, until time.Time) error {
	_ = s.conn.SetReadDeadline(until)
	defer func() { _ = s.conn.SetReadDeadline(time.Time{}) }()
	n := len(s.early)
	if cap(s.early) < limit {
		grown := make([]byte, n, min(limit, max(2*n, 1<<10)))
		copy(grown, s.early)
		s.early = grown
	}
	room := s.early[n:min(limit, cap(s.early))]
	m, err := s.conn.Read(room)
	s.early = s.early[:n+m]
	if m > 0 {
		return nil
	}
	return err
}
