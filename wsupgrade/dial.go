package wsupgrade

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"

	"github.com/culvert-go/culvert/internal/relay"
)

// upstreamConn is a connection to the target, with the bytes that were read from it ahead of use.
type upstreamConn struct {
	net.Conn
	limit  *io.LimitedReader
	reader *bufio.Reader
	wrote  bool // a byte of the request may have been sent
}

// connect dials the target that u names, with TLS if its scheme is a secure one. On failure nothing
// is left open.
func (f *Forwarder) connect(ctx context.Context, u *url.URL) (made *upstreamConn, err error) {
	secure := isSecure(u)
	dial, dialTLS := f.dials(ctx)
	if secure && dialTLS != nil {
		dial = dialTLS
	}
	conn, err := dialOne(ctx, dial, address(u, secure))
	if err != nil {
		return nil, err
	}
	defer func() {
		if made == nil { // also where a function of the TLS configuration panics
			conn.Close()
		}
	}()
	if secure && dialTLS == nil {
		shaking := &handshaking{Conn: conn}
		client := tls.Client(shaking, f.clientTLS(u.Hostname()))
		err := client.HandshakeContext(ctx)
		if shaking.finish(); err != nil {
			return nil, err
		}
		conn = client
	}
	limit := &io.LimitedReader{R: conn, N: int64(f.maxHeaderBytes)}
	reader := readers.Get().(*bufio.Reader)
	reader.Reset(limit)
	return &upstreamConn{Conn: conn, limit: limit, reader: reader}, nil
}

// dials returns the functions by which the target of an outbound request with ctx is dialled; dialTLS is nil if f makes the
// handshake.
func (f *Forwarder) dials(ctx context.Context) (dial, dialTLS relay.Dial) {
	dial, dialTLS = f.ownDial(), f.dialTLS
	byContext, byGroup := relay.DialOf(ctx)
	if f.dial != nil || byContext == nil {
		return dial, dialTLS
	}
	dial = byContext
	if dialTLS == nil && f.tlsConfig == nil {
		dialTLS = byGroup
	}
	return dial, dialTLS
}

// ownDial returns Options.Dial, or that of a net.Dialer.
func (f *Forwarder) ownDial() relay.Dial {
	if f.dial == nil {
		return (&net.Dialer{}).DialContext
	}
	return f.dial
}

// errNilConn is the error of a Dial that returns neither a connection nor an error.
var errNilConn = errors.New("wsupgrade: Options.Dial returned (nil, nil)")

// dialOne calls the user's Dial or DialTLS.
func dialOne(ctx context.Context, dial relay.Dial, addr string) (net.Conn, error) {
	conn, err := dial(ctx, "tcp", addr)
	if conn == nil && err == nil {
		return nil, errNilConn
	}
	return conn, err
}

// readers are reused between handshakes.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

func isSecure(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "wss" }

// address returns the address to dial: u's host, with the scheme's port where it names none.
func address(u *url.URL, secure bool) string {
	switch {
	case u.Port() != "":
		return u.Host
	case secure:
		return net.JoinHostPort(u.Hostname(), "443")
	default:
		return net.JoinHostPort(u.Hostname(), "80")
	}
}

// clientTLS returns the configuration for one target. Only HTTP/1.1 is offered: what is written
// next is an HTTP/1.1 header.
func (f *Forwarder) clientTLS(host string) *tls.Config {
	config := f.tlsConfig.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	config.NextProtos = []string{"http/1.1"}
	return config
}

// early returns what the target sent after its header. c is not read from afterwards.
func (c *upstreamConn) early() []byte {
	peeked, _ := c.reader.Peek(c.reader.Buffered())
	early := bytes.Clone(peeked)
	c.reader.Reset(nil)
	readers.Put(c.reader)
	c.reader = nil
	return early
}
