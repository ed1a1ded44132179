package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
)

// handshake ends the client's TLS. It returns a status if that fails.
func (s *Session) handshake(ctx context.Context) int {
	s.action = "SSL handshaking"
	t := tls.Server(&earlyConn{Conn: s.raw, early: s.early, session: s}, s.port.TLS)
	s.early = nil
	ctx, cancel := context.WithTimeout(ctx, s.server.HandshakeTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		text := "SSL_do_handshake() failed (" + err.Error() + ")"
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			text = "client timed out (110: Connection timed out)"
		case errors.Is(err, io.EOF):
			text = "peer closed connection in SSL handshake"
		}
		s.LogAt(levelInfo, text)
		return statusFailed
	}
	state := t.ConnectionState()
	s.conn, s.TLS = t, &state
	if verify := s.server.Verify; verify != nil {
		if err := verify(s); err != nil {
			s.LogAt(levelInfo, err.Error())
			return statusFailed
		}
	}
	return 0
}

// ChooseByName makes the server that a client names in its handshake that of its session, and returns it, nil if it is not
// known. It is for Port.TLS.GetConfigForClient.
func ChooseByName(hello *tls.ClientHelloInfo) *Server {
	s := SessionOf(hello)
	if s == nil {
		return nil
	}
	s.chooseByName(hello.ServerName)
	if s.Failed() { // the handshake fails, and the session with it
		return nil
	}
	return s.server
}

// SessionOf returns the session of a handshake, nil if it is not one of this package.
func SessionOf(hello *tls.ClientHelloInfo) *Session {
	if c, ok := hello.Conn.(*earlyConn); ok {
		return c.session
	}
	return nil
}
