package http3

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
)

// Settings are what a configuration says of an address.
type Settings struct {
	// TLS chooses the certificate, and must have "h3" among its protocols where HTTP/3 is to be spoken. The version is
	// always TLS 1.3. It must not be nil.
	TLS *tls.Config
	// Handler serves the requests. A panic ends the stream, and is logged unless it is http.ErrAbortHandler. A field
	// "Connection: close" of its response is not sent: the connection ends when its requests have (GOAWAY).
	Handler http.Handler
	// HandshakeTimeout bounds how long a client may be silent in its handshake, which may take twice as long; 0 means five
	// seconds.
	HandshakeTimeout time.Duration
	// IdleTimeout is how long a connection without a request is kept; 0 means HandshakeTimeout.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the size of a request's header section, with 32 bytes more for each field (RFC 9114 section
	// 4.2.2), and that of its trailers. A larger one gets the response 431. 0 means 1 MiB.
	MaxHeaderBytes int
	// MaxStreams bounds the requests of a connection at a time; 0 means 100.
	MaxStreams int
	// StreamBuffer is how many bytes of a request's body a client may send before they are read, at first: the window of a
	// client that is read quickly grows to 1 MiB. 0 means 512 KiB.
	StreamBuffer int
	// Retry reports whether each client must show first that it receives what is sent to its address.
	Retry bool
	// BaseContext, if not nil, ends the contexts of requests when it ends.
	BaseContext context.Context
	// ConnContext, if not nil, changes the context of a new connection, also that of its handshake. The net.Conn stands for the
	// connection, has no bytes, and knows its addresses when the handshake is complete.
	ConnContext func(context.Context, net.Conn) context.Context
	// ConnState, if not nil, is called as that of an http.Server is.
	ConnState func(net.Conn, http.ConnState)
	// Logger is for panics of the handler; nil is slog's default.
	Logger *slog.Logger
}

// The windows of clients that are read quickly.
const (
	maxStreamWindow = 1 << 20
	maxConnWindow   = 8 << 20
	connWindow      = 512 << 10
)

// maxUniStreams bounds the streams for control and for the fields' tables: a client needs three.
const maxUniStreams = 8

// silence is how long a client with a request may be silent. quic-go has it respond to a ping every half of that.
const silence = time.Minute

// quicConfig returns the settings of quic-go.
func (s *Settings) quicConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:           s.HandshakeTimeout,
		MaxIdleTimeout:                 max(s.idleTimeout(), silence),
		KeepAlivePeriod:                silence / 2, // a request may be silent for longer than a connection
		InitialStreamReceiveWindow:     uint64(s.StreamBuffer),
		MaxStreamReceiveWindow:         uint64(max(s.StreamBuffer, maxStreamWindow)),
		InitialConnectionReceiveWindow: uint64(max(s.StreamBuffer, connWindow)),
		MaxConnectionReceiveWindow:     uint64(max(s.StreamBuffer, maxConnWindow)),
		MaxIncomingStreams:             int64(s.MaxStreams),
		MaxIncomingUniStreams:          maxUniStreams,
	}
}

func (s *Settings) idleTimeout() time.Duration {
	if s.IdleTimeout > 0 {
		return s.IdleTimeout
	}
	return max(s.HandshakeTimeout, time.Second)
}
