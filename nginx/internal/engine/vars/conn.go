package vars

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is the state of a client's connection.
type Conn struct {
	// Serial is the connection's number.
	Serial uint64
	// Born is when it was accepted.
	Born time.Time
	// Requests counts the requests so far.
	Requests atomic.Int64
	// Hello is what the client has sent in its TLS handshake, nil for cleartext. It is set before the first request.
	Hello *Hello

	conn     net.Conn
	mu       sync.Mutex // guards what follows
	rule     any        // that verified is of
	verified error
}

// Hello is what a client offers in a TLS handshake, in its order.
type Hello struct {
	Ciphers    []uint16
	Curves     []tls.CurveID
	Signatures []tls.SignatureScheme
	// SessionID returns the session's ID when the handshake is complete, "" if there is none. It may be nil.
	SessionID func() string
}

// Net returns the connection itself, nil if the server was not given a ConnContext.
func (c *Conn) Net() net.Conn { return c.conn }

// VerifyClient returns the result of do, which is called once as long as the rule is the same:
// requests of one connection may be served by several configurations, one after the other.
func (c *Conn) VerifyClient(rule any, do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rule != rule {
		c.rule, c.verified = rule, do()
	}
	return c.verified
}

// ProxyAddrs returns the client's and the server's address in the PROXY protocol's header; nil if
// there was none.
func (c *Conn) ProxyAddrs() (client, server net.Addr) {
	if p := proxied(c.conn); p != nil {
		return p.ProxyAddrs()
	}
	return nil, nil
}

// proxyTLVs returns what follows the addresses in the PROXY protocol's header.
func (c *Conn) proxyTLVs() string {
	if p, ok := proxied(c.conn).(interface{ ProxyTLVs() string }); ok {
		return p.ProxyTLVs()
	}
	return ""
}

// Proxied is a connection with the addresses of its PROXY protocol header.
type Proxied interface {
	// ProxyAddrs returns the addresses of the header; nil for one that it does not have.
	ProxyAddrs() (client, server net.Addr)
}

// proxied returns the connection below TLS.
func proxied(c net.Conn) Proxied {
	if p, ok := c.(Proxied); ok {
		return p
	}
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return proxied(t.NetConn())
	}
	return nil
}

// Conns numbers connections, starting with 1.
type Conns struct{ last atomic.Uint64 }

type connKey struct{}

// Context is a server's ConnContext.
func (c *Conns) Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c.New(conn))
}

// New numbers a connection that has just been accepted; conn is nil for one without a net.Conn of its own.
func (c *Conns) New(conn net.Conn) *Conn {
	return &Conn{Serial: c.last.Add(1), Born: time.Now(), conn: conn}
}

// ConnFrom returns the connection that ctx carries; one with the number 0 if the server was not
// given a ConnContext.
func ConnFrom(ctx context.Context) *Conn {
	if c, ok := ctx.Value(connKey{}).(*Conn); ok {
		return c
	}
	return &Conn{}
}
