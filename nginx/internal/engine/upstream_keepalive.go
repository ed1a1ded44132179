package engine

import (
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// keepaliveRule is how long an upstream's connections are kept
// (ngx_http_upstream_keepalive_module.c). 0 is the library's default.
type keepaliveRule struct {
	off      bool // "keepalive 0"
	max      int
	requests int
	time     time.Duration
	timeout  time.Duration
}

// keepaliveOver returns the rule for connections of HTTP/2, or of HTTP/1.1. As in nginx a request of HTTP/2 has a connection of its own
// where there is no upstream block: over a shared one all calls would be of the one server that a balancer behind the address has chosen
// for the first.
func (g *group) keepaliveOver(http2 bool) keepaliveRule {
	if http2 && g.implicit {
		return keepaliveRule{off: true}
	}
	return g.keepalive
}

// groupKeepalive compiles keepalive and the related directives inside upstream.
func groupKeepalive(_ *compiler, g *group, d *conf.Directive) (err error) {
	k := &g.keepalive
	switch d.Name {
	case "keepalive":
		n, ok := conf.Number(d.Args[0])
		if !ok {
			return d.Errorf("invalid value \"%s\" in \"keepalive\" directive", d.Args[0])
		}
		if len(d.Args) == 2 && d.Args[1] != "local" { // a location's settings have connections of their own in any case
			return d.Errorf("invalid parameter \"%s\"", d.Args[1])
		}
		k.max, k.off = n, n == 0
	case "keepalive_requests":
		k.requests, err = d.Number()
	case "keepalive_time":
		k.time, err = d.Duration()
	case "keepalive_timeout":
		k.timeout, err = d.Duration()
	}
	return err
}
