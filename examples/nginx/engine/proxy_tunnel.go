package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/wsupgrade"
)

// forwarder forwards upgrades. nginx looks at no Origin, and neither does the
// example: the configuration decides what is forwarded. proxy_read_timeout ends a
// tunnel over which nothing comes or goes.
func (e *Engine) forwarder(scheme string, s proxySettings) (*wsupgrade.Forwarder, error) {
	o := wsupgrade.Options{
		HandshakeTimeout: s.connectTimeout + s.readTimeout,
		HeaderTimeout:    s.readTimeout,
		IdleTimeout:      s.readTimeout,
		CheckOrigin:      func(*http.Request) bool { return true },
		Dial:             dialer(s.connectTimeout),
		Registry:         e.tunnels,
	}
	if scheme == "https" {
		o.TLSConfig = upstreamTLS()
	}
	return wsupgrade.New(o)
}
