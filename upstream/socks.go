package upstream

import (
	"context"
	"errors"
	"net"
	"os"

	"golang.org/x/net/proxy"
)

// The replies of a SOCKS server (RFC 1928 section 6) that are not about the target.
const (
	socksNotAllowed  = 2
	socksUnsupported = 7 // the command
)

// socks opens a connection by SOCKS5.
func (e *egress) socks(ctx context.Context, c net.Conn, addr string) error {
	var auth *proxy.Auth
	if e.user != nil {
		password, _ := e.user.Password()
		auth = &proxy.Auth{User: e.user.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", e.addr, auth, nil)
	if err != nil {
		return e.failure(true, 0, err)
	}
	over, ok := dialer.(interface {
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return e.failure(true, 0, errors.New("golang.org/x/net/proxy has no DialWithConn"))
	}
	said := &socksReplies{Conn: c}
	if _, err = over.DialWithConn(ctx, said, "tcp", addr); err == nil {
		return nil
	}
	late := errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil
	return e.failure(!said.aboutTarget(late), 0, err)
}

// socksReplies keeps what a SOCKS server says at first: the errors of package proxy for it have no type.
type socksReplies struct {
	net.Conn
	received []byte
}

// Read implements net.Conn.
func (s *socksReplies) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.received = append(s.received, p[:min(n, 6-len(s.received))]...)
	return n, err
}

// aboutTarget reports whether a connection has failed by what the server says of the target, or, if its time is over, since the
// target was waited for, perhaps.
func (s *socksReplies) aboutTarget(late bool) bool {
	const version, password = 5, 2
	b := s.received
	if len(b) < 2 || b[0] != version || b[1] == 0xff { // no method of authentication is agreed on
		return false
	}
	method := b[1]
	if b = b[2:]; method == password {
		if len(b) < 2 || b[1] != 0 { // RFC 1929 section 2
			return false
		}
		b = b[2:]
	}
	if len(b) < 2 {
		return late
	}
	return b[0] == version && b[1] != 0 && b[1] != socksNotAllowed && b[1] != socksUnsupported
}
