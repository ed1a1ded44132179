package engine

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// grpcFamily sends requests by HTTP/2 (ngx_http_grpc_module.c).
var grpcFamily = &family{
	name: "grpc",
	slot: newSlot(proxySettings{
		buffers:        buffers{streamed: true},
		connectTimeout: time.Minute,
		http2:          true,
		passBody:       true,
		passFields:     true,
		passTrailers:   true,
		readTimeout:    time.Minute,
		retry:          proxy.Retry{Errors: true, Timeouts: true},
		sendTimeout:    time.Minute,
		tls:            tlsRule{depth: 1, min: tls.VersionTLS12, sessions: true},
	}),
	schemes:      []urlScheme{{prefix: "grpc://"}, {prefix: "grpcs://", secure: true}, {}},
	hidden:       []string{"Date", "Server"},
	roundTripper: func(_ *Engine, _ *passRule, t *upstream.Transport, _ *group) http.RoundTripper { return t },
	outbound:     (*passRule).rewrite,
}

var grpcModule = module{
	directives: grpcFamily.named(grpcFamily.connections(), grpcFamily.responses(), grpcFamily.certificates(), grpcFamily.fields()),
}
