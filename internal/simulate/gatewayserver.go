package simulate

import (
	"log"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/internal/wiretest/ownserver"
	"github.com/culvert-go/culvert/upstream"
)

// writeByteTimeout is the WriteByteTimeout of the gateway's server.
const writeByteTimeout = time.Minute

// idleTimeout is the IdleTimeout of the gateway's server.
const idleTimeout = time.Minute

// addServer chooses the gateway's server.
func (p *Plan) addServer(c *Choices) { p.Gateway.Server = c.Bool(2) }

// addExpect10 chooses clients of HTTP/1.0 whose requests have an expectation, which is of HTTP/1.1: a server must ignore it
// (RFC 9110 section 10.1.1).
func (p *Plan) addExpect10(c *Choices) {
	for i := range p.Clients {
		client := &p.Clients[i]
		if client.Kind != HTTP10 || !c.Bool(3) {
			continue
		}
		for k := range client.Requests {
			if e := &client.Requests[k]; e.Body.Length > 0 {
				e.Expect, e.Manner = true, ExpectNot
			}
		}
	}
}

// lender is a handler whose requests package server may use the memory of again. The proxy's Rewrite and its other hooks might
// hold a request; the simulator's do not, and neither do its handlers around the proxy.
type lender struct {
	http.Handler
	group *upstream.Group
}

func init() {
	clientside.RegisterReturner(func(l lender) bool { return clientside.Returns(l.group) })
}

// lending returns h, or a lender: filters may hold a request.
func (g *gateway) lending(h http.Handler) http.Handler {
	if len(g.plan.Gateway.Filters) > 0 || g.plan.Gateway.Hooks.Warn || g.dynamic != nil {
		return h
	}
	return lender{h, g.group}
}

// newServer returns the gateway's server: net/http's, or package server's.
func newServer(plan *Plan, h http.Handler, errors *log.Logger) wiretest.Serving {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(true)
	o := &http.Server{Handler: h, Protocols: &protocols, ErrorLog: errors, IdleTimeout: plan.takes(idleTimeout),
		ReadHeaderTimeout: plan.takes(30 * time.Second), WriteTimeout: plan.Gateway.ServerWrite, MaxHeaderBytes: 64 << 10, TLSConfig: serverTLS(),
		// Without it a write to an HTTP/2 connection whose client has stopped reading never ends: the deadline of a stream
		// only queues a frame after that write.
		HTTP2: &http.HTTP2Config{WriteByteTimeout: plan.takes(writeByteTimeout), SendPingTimeout: plan.pingAfter()}}
	if plan.Gateway.Server {
		s := ownserver.New(o)
		s.KeepFieldNames = plan.Gateway.KeepsNames
		if !plan.exact() {
			parkSoon(s)
		}
		return s
	}
	return o
}
