package engine

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/memcached"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// memcachedFamily serves values of memcached (ngx_http_memcached_module.c).
var memcachedFamily = &family{
	name: "memcached",
	slot: newSlot(proxySettings{
		connectTimeout: time.Minute,
		readTimeout:    time.Minute,
		retry:          proxy.Retry{Errors: true, Timeouts: true},
		sendTimeout:    time.Minute,
		forceRanges:    true,
		intercept:      true, // a value that is not there is served by error_page
	}),
	schemes:      []urlScheme{{}},
	typed:        true,
	noContent:    true,
	roundTripper: memcachedTransport,
	outbound:     plain,
}

var memcachedModule = module{
	directives: memcachedFamily.named(memcachedFamily.connections(), []directive{
		{name: "gzip_flag", compile: setNumber(memcachedFamily.slot, func(s *proxySettings) *int { return &s.gzipFlag })},
	}),
}

func memcachedTransport(e *Engine, p *passRule, t *upstream.Transport, g *group) http.RoundTripper {
	key := func(r *http.Request) string {
		x := exchangeOf(r.Context())
		return x.Variable("memcached_key")
	}
	return e.over(p, memcached.Protocol(memcached.Options{Key: key, GzipFlag: uint32(p.settings().gzipFlag)}), t, g, true)
}
