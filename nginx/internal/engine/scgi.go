package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/internal/scgi"
	"github.com/culvert-go/culvert/upstream"
)

// scgiFamily sends requests by SCGI (ngx_http_scgi_module.c).
var scgiFamily = &family{
	name:         "scgi",
	slot:         newSlot(cgiDefaults()),
	schemes:      []urlScheme{{prefix: "scgi://"}, {}},
	hidden:       []string{"Status"},
	lengths:      true,
	noTrailers:   true,
	roundTripper: scgiTransport,
	outbound:     plain,
}

var scgiModule = module{
	directives: scgiFamily.named(scgiFamily.connections(), scgiFamily.responses(), scgiFamily.stores(), scgiFamily.bodies(), scgiFamily.params()),
}

func scgiTransport(e *Engine, p *passRule, t *upstream.Transport, g *group) http.RoundTripper {
	return e.over(p, scgi.Protocol(p.family.paramsOf), t, g, false)
}
