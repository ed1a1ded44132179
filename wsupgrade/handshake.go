package wsupgrade

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
)

// upstreamConn is a connection to the target, with whatever was read from it
// ahead of its use.
type upstreamConn struct {
	net.Conn
	limit  *io.LimitedReader
	reader *bufio.Reader
	wrote  bool // a byte of the request may have been sent
}

// connect dials the target of out.
func (f *Forwarder) connect(ctx context.Context, out *http.Request) (*upstreamConn, error) {
	conn, err := f.dial(ctx, "tcp", out.URL.Host)
	if err != nil {
		return nil, err
	}
	if out.URL.Scheme == "https" || out.URL.Scheme == "wss" {
		secure := tls.Client(conn, f.clientTLS(out.URL.Hostname()))
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = secure
	}
	limit := &io.LimitedReader{R: conn, N: int64(f.maxHead)}
	return &upstreamConn{Conn: conn, limit: limit, reader: bufio.NewReader(limit)}, nil
}

// clientTLS is the configuration for one target. Only HTTP/1.1 is offered: what
// is written next is an HTTP/1.1 head.
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

// handshake sends out's head and returns the final answer's. Interim answers
// are skipped; they count against the head's limit.
func (c *upstreamConn) handshake(out *http.Request) (*http.Response, error) {
	c.wrote = true
	if err := out.Write(c.Conn); err != nil {
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(c.reader, out)
		if err != nil {
			if c.limit.N <= 0 {
				err = errors.New("response head over the limit")
			}
			return nil, err
		}
		if resp.StatusCode < 100 || resp.StatusCode > 999 {
			return nil, errors.New("invalid status " + resp.Status)
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode >= 200 {
			c.limit.N = math.MaxInt64
			return resp, nil
		}
	}
}

// early returns what the target sent behind its head.
func (c *upstreamConn) early() []byte {
	early, _ := c.reader.Peek(c.reader.Buffered())
	return early
}

// handshakeError gives err the kind that fits where the handshake stood.
func handshakeError(in context.Context, conn *upstreamConn, err error) error {
	e := &fault.Error{Kind: fault.Head, Err: err, Wrote: conn != nil && conn.wrote}
	var netErr net.Error
	switch {
	case errors.Is(in.Err(), context.Canceled):
		e.Kind = fault.ClientGone
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		e.Kind = fault.Timeout
	case conn == nil:
		e.Kind = fault.Dial
	}
	return e
}

// past is a deadline that ends every pending read and write.
var past = time.Unix(1, 0)
