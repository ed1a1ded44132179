package simulate

import (
	"crypto/tls"
	"net"
)

// duplex is an end of a connection as the parties use it: bare or over TLS.
type duplex interface {
	net.Conn
	// CloseWrite ends the direction of the writes.
	CloseWrite() error
	// Reset ends both at once.
	Reset()
	// Closed is closed when this end has closed.
	Closed() <-chan struct{}
}

// secured is a client's connection over TLS.
type secured struct {
	*tls.Conn
	bare *Conn
}

// CloseWrite sends an alert that closes, and a FIN.
func (s secured) CloseWrite() error {
	_ = s.Conn.CloseWrite()
	return s.bare.CloseWrite()
}

// Close closes the connection below without an alert: a client that goes. An alert would wait for a writer.
func (s secured) Close() error { return s.bare.Close() }

// Reset implements duplex, as does Closed.
func (s secured) Reset()                  { s.bare.Reset() }
func (s secured) Closed() <-chan struct{} { return s.bare.closed }

// Closed is closed when this end has closed.
func (c *Conn) Closed() <-chan struct{} { return c.closed }
