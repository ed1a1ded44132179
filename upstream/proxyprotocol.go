package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/proxyproto"
)

// ProxyProtocol is a version of the PROXY protocol, by whose header a proxy names the client of a connection
// (www.haproxy.org/download/3.0/doc/proxy-protocol.txt). The zero value is none.
type ProxyProtocol int

const (
	// ProxyProtocolV1 is version 1, a line of text.
	ProxyProtocolV1 ProxyProtocol = 1
	// ProxyProtocolV2 is version 2, which is binary.
	ProxyProtocolV2 ProxyProtocol = 2
)

// preface returns the header of a connection for a request that was received by e; "" for none.
func (p ProxyProtocol) preface(e client.Ends) string {
	h := proxyproto.Header{Local: e.Own, Client: e.Client, Server: e.Server}
	var memory [64]byte
	switch p {
	case ProxyProtocolV1:
		return string(h.Append1(memory[:0]))
	case ProxyProtocolV2:
		return string(h.Append2(memory[:0]))
	}
	return ""
}

// introduce begins a connection that was made with its preface. It closes the connection if that fails.
func (o *Options) introduce(c net.Conn, preface string) (net.Conn, error) {
	if preface == "" {
		return c, nil
	}
	err := c.SetWriteDeadline(time.Now().Add(o.DialTimeout))
	if err == nil {
		_, err = c.Write([]byte(preface))
	}
	if err == nil {
		err = c.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("PROXY protocol: %w", err)
	}
	return c, nil
}

// checkProxyProtocol returns an error if connections would name a client whose requests are not the only ones on them, or none.
func (o Options) checkProxyProtocol() error {
	own, isOwn := o.Transport.(*Transport)
	switch {
	case o.ProxyProtocol < 0 || o.ProxyProtocol > ProxyProtocolV2:
		return fmt.Errorf("unknown version %d of ProxyProtocol", o.ProxyProtocol)
	case o.ProxyProtocol != 0 && o.Protocol != HTTP1:
		return errors.New("ProxyProtocol needs HTTP1: a connection of HTTP/2 has streams of several clients")
	case o.ProxyProtocol != 0 && o.Transport != nil && !(isOwn && own.o.ProxyProtocol == o.ProxyProtocol):
		return errors.New("ProxyProtocol with a Transport that does not have it")
	}
	return nil
}

// proxyProtocolOfChecks returns the version with which checks begin their connections. Another port than the targets' is another server's.
func (o *Options) proxyProtocolOfChecks() ProxyProtocol {
	if o.Check.Port != 0 {
		return 0
	}
	return o.ProxyProtocol
}

// withEnds returns r with a context from which a connection for it learns its client.
func (o *Options) withEnds(r *http.Request) *http.Request {
	if o.ProxyProtocol == 0 {
		return r
	}
	return r.WithContext(client.WithEnds(r.Context(), client.EndsOf(r)))
}
