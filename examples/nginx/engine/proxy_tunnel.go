package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// forwarder forwards upgrades. nginx looks at no Origin, and neither does the
// example: the configuration decides what is forwarded. proxy_read_timeout ends a
// tunnel over which nothing comes or goes.
func (e *Engine) forwarder(s proxySettings, t *upstream.Transport) (*wsupgrade.Forwarder, error) {
	return wsupgrade.New(wsupgrade.Options{
		HandshakeTimeout: s.connectTimeout + s.readTimeout,
		HeaderTimeout:    s.readTimeout,
		IdleTimeout:      s.readTimeout,
		CheckOrigin:      func(*http.Request) bool { return true },
		Dial:             t.Dial,
		TLSConfig:        t.TLSConfig(),
		Registry:         e.tunnels,
	})
}
