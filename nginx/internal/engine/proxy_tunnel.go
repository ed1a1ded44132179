package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// forwarder returns a forwarder of upgrades to every protocol that can be forwarded: the
// location's Upgrade and Connection fields decide which requests are upgrades (see inbound). As
// in nginx, Origin is not checked. proxy_read_timeout ends a tunnel in which no data is sent in
// either direction.
func (e *Engine) forwarder(s proxySettings, t *upstream.Transport) (*wsupgrade.Forwarder, error) {
	return wsupgrade.New(wsupgrade.Options{
		Protocols:        []string{wsupgrade.AnyProtocol},
		HandshakeTimeout: s.connectTimeout + s.readTimeout,
		HeaderTimeout:    s.readTimeout,
		IdleTimeout:      s.readTimeout,
		CheckOrigin:      func(*http.Request) bool { return true },
		Dial:             t.Dial,
		TLSConfig:        t.TLSConfig(),
		Registry:         e.tunnels,
	})
}
