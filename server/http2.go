package server

//lint:file-ignore SA1019 http.Server serves no connection that was accepted and looked at before; http2.Server does.

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// configureHTTP2 prepares HTTP/2, if it is spoken, over TLS or in the clear.
func (s *Server) configureHTTP2() error {
	if p := s.protocols(); !p.HTTP2() && !p.UnencryptedHTTP2() {
		return nil
	}
	if s.TLSConfig != nil {
		s.standIn.TLSConfig = s.TLSConfig.Clone()
	}
	s.standIn.ConnState = s.http2State
	s.h2 = new(http2.Server)
	return http2.ConfigureServer(s.standIn, s.h2)
}

// http2State passes the states of a connection of HTTP/2 on.
func (s *Server) http2State(rwc net.Conn, state http.ConnState) {
	rwc = clientConn(rwc)
	if p, ok := rwc.(*prefaced); ok {
		rwc = p.Conn
	}
	if s.ConnState != nil && state != http.StateNew && state != http.StateClosed { // those are the connection's own
		s.ConnState(rwc, state)
	}
}

// serveStream has the handler respond to a request of HTTP/2.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	if !s.keepAlives() {
		w.Header().Set("Connection", "close") // golang.org/x/net sends a GOAWAY instead
	}
	if r.TLS == nil { // golang.org/x/net believes the client's ":scheme"
		r.TLS, _ = r.Context().Value(tlsKey{}).(*tls.ConnectionState)
	}
	s.serveHTTP(w, r)
}

// tlsKey is the key of a connection's *tls.ConnectionState in the context of its streams.
type tlsKey struct{}

// goAway has the present connections of HTTP/2 accept no more streams, and end when they have served those that they have.
func (s *Server) goAway() {
	if s.h2 != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.standIn.Shutdown(ended) // it has no connections of its own: this calls what ConfigureServer has registered
	}
}

// serveHTTP2 serves the connection if the client has chosen HTTP/2: by ALPN over TLS, by the preface in the clear. Otherwise
// it reports false.
func (c *conn) serveHTTP2() bool {
	p := c.server.protocols()
	var rwc net.Conn
	switch {
	case c.tls != nil && c.tls.NegotiatedProtocol == http2.NextProtoTLS:
		if !p.HTTP2() {
			return true // the connection ends
		}
		rwc = c.rwc
	case c.tls == nil && p.UnencryptedHTTP2():
		if rwc = c.readPreface(); rwc == nil {
			return false
		}
	default:
		return false
	}
	if !c.state.CompareAndSwap(uint32(http.StateNew), uint32(http.StateActive)) {
		return true
	}
	_ = c.rwc.SetDeadline(time.Time{}) // HTTP/2 has its own
	ctx := c.ctx
	if c.tls != nil {
		ctx = context.WithValue(ctx, tlsKey{}, c.tls)
	}
	prefaced := rwc != c.rwc
	c.server.h2.ServeConn(newHTTP2Conn(rwc, prefaced), &http2.ServeConnOpts{Context: ctx, BaseConfig: c.server.standIn, SawClientPreface: prefaced})
	return true
}

// readPreface returns the connection behind the preface of HTTP/2 (RFC 9113 section 3.4), nil if the client does not send it.
func (c *conn) readPreface() net.Conn {
	c.boundHeader(time.Now())
	c.boundReads(c.headerEnds)
	c.takeReader()
	preface := []byte(http2.ClientPreface)
	for n := 1; n <= len(preface); n++ {
		b, err := c.r.Peek(n)
		if err != nil || !bytes.Equal(b, preface[:n]) {
			return nil
		}
	}
	_, _ = c.r.Discard(len(preface))
	received, _ := c.r.Peek(c.r.Buffered())
	rest := bytes.Clone(received)
	c.freeReader()
	return &prefaced{c.rwc, rest}
}

// prefaced is a connection behind the preface of HTTP/2, with what was received with that.
type prefaced struct {
	net.Conn
	received []byte
}

// Read returns what was received first.
func (p *prefaced) Read(b []byte) (int, error) {
	if len(p.received) > 0 {
		n := copy(b, p.received)
		p.received = p.received[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
