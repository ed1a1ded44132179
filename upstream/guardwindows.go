//go:build !go1.27

package upstream

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// guardWindows has each connection of HTTP/2 that t makes end when its target opens the window of a stream beyond 2^31-1
// bytes. That is an error (RFC 9113 section 6.9.1), at which net/http's client of Go 1.26 locks up for ever: its
// reader locks a mutex that it holds, which all requests to the target and CloseIdleConnections need. The client of
// golang.org/x/net has no such fault, but passes malformed responses on as if they were none: it removes a Content-Length
// that is no number, for instance. t must not be in use. Go 1.27 needs nothing of this.
func guardWindows(t *http.Transport) {
	t.CloseIdleConnections() // t has TLSNextProto then
	plain := t.TLSNextProto[unencryptedHTTP2]
	if plain == nil { // GODEBUG has http2client=0
		return
	}
	handOver := func(authority string, c net.Conn) http.RoundTripper {
		return plain(authority, tls.Client(handedOver{Conn: c}, nil))
	}
	t.TLSNextProto[unencryptedHTTP2] = func(authority string, c *tls.Conn) http.RoundTripper {
		return handOver(authority, newWindowGuard(c.NetConn().(unencryptedConn).UnencryptedNetConn()))
	}
	// The function for TLS accepts a *tls.Conn only. What is behind both finds a connection by its address alone.
	t.TLSNextProto["h2"] = func(authority string, c *tls.Conn) http.RoundTripper {
		return handOver(authority, &tlsWindowGuard{newWindowGuard(c), c})
	}
}

// unencryptedHTTP2 is the key of http.Transport.TLSNextProto for connections without TLS, which are handed over inside of a *tls.Conn that
// is none (golang.org/x/net/http2, ConfigureTransports).
const unencryptedHTTP2 = "unencrypted_http2"

type unencryptedConn interface{ UnencryptedNetConn() net.Conn }

// handedOver is a connection to hand over.
type handedOver struct{ net.Conn }

// UnencryptedNetConn implements unencryptedConn.
func (h handedOver) UnencryptedNetConn() net.Conn { return h.Conn }

// tlsWindowGuard is a windowGuard over TLS. net/http looks for its ConnectionState.
type tlsWindowGuard struct {
	*windowGuard
	tls *tls.Conn
}

// ConnectionState returns the state of TLS, for http.Response.TLS.
func (g *tlsWindowGuard) ConnectionState() tls.ConnectionState { return g.tls.ConnectionState() }

// NetConn returns the connection below TLS.
func (g *tlsWindowGuard) NetConn() net.Conn { return g.tls.NetConn() }

// closeWait is how long the end of TLS may be written for. net/http has the same bound, for a *tls.Conn alone.
const closeWait = 250 * time.Millisecond

// Close implements net.Conn.
func (g *tlsWindowGuard) Close() error {
	defer time.AfterFunc(closeWait, func() { g.tls.NetConn().Close() }).Stop()
	return g.tls.Close()
}
