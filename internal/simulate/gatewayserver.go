package simulate

import (
	"log"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/internal/wiretest/ownserver"
)

// writeByteTimeout is the WriteByteTimeout of the gateway's server.
const writeByteTimeout = time.Minute

// idleTimeout is the IdleTimeout of the gateway's server.
const idleTimeout = time.Minute

// addServer chooses the gateway's server.
func (p *Plan) addServer(c *Choices) { p.Gateway.Server = c.Bool(2) }

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
		return ownserver.New(o)
	}
	return o
}
