package engine

import (
	"context"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
)

// mirrorModule sends copies of requests (ngx_http_mirror_module.c).
var mirrorModule = module{
	directives: []directive{
		{name: "mirror", repeatable: true, compile: mirrorDirective},
		{name: "mirror_request_body", compile: setFlag(mirrorSlot, func(r *mirrorRule) *bool { return &r.body })},
	},
	merge:  makeMirrors,
	active: func(l *level) bool { return len(mirrorSlot.of(l).made) > 0 },
	hooks:  hooks{around: mirrorFilter},
}

var mirrorSlot = newSlot(mirrorRule{body: true})

// mirrorRule is mirror and mirror_request_body (ngx_http_mirror_module.c).
type mirrorRule struct {
	targets []string
	body    bool // mirror_request_body
	made    []*filters.Mirror
}

// copiesBodies reports whether copies of requests have their bodies.
func (r *mirrorRule) copiesBodies() bool { return r.body && len(r.made) > 0 }

// maxMirrored bounds the body that is kept for a copy.
const maxMirrored = 1 << 20

// mirrorDirective compiles "mirror uri|off".
func mirrorDirective(_ *compiler, l *level, d *conf.Directive) error {
	rule := mirrorSlot.edit(l)
	if l.first("mirror") {
		rule.targets = nil
	}
	if d.Args[0] != "off" {
		rule.targets = append(rule.targets, d.Args[0])
	}
	return nil
}

// makeMirrors creates the mirrors of a level that has set some.
func makeMirrors(c *compiler, l *level) error {
	if !mirrorSlot.own(l) {
		return nil
	}
	rule := mirrorSlot.edit(l)
	rule.made = nil
	for _, target := range rule.targets {
		m, err := filters.NewMirror(filters.MirrorOptions{
			MaxBody:  maxMirrored,
			Upgrades: true, // as in nginx: no client decides that there is no copy
			Context: func(ctx context.Context, r *http.Request) context.Context {
				return exchangeOf(r.Context()).branch(ctx, target).HTTP.Context()
			},
			To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				exchangeOf(r.Context()).serveCopy(r)
			}),
		})
		if err != nil {
			return l.at.Errorf("%s", err)
		}
		rule.made = append(rule.made, m)
		c.engine.mirrors = append(c.engine.mirrors, m)
	}
	return nil
}

// mirrorFilter sends copies of a request to the URIs of mirror.
func mirrorFilter(x *exchange) culvert.Filter {
	rule := mirrorSlot.of(x.level)
	if x.main != nil {
		return nil
	}
	return func(next http.Handler) http.Handler {
		if !rule.body {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, m := range rule.made {
					m.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(nil, withoutBody(r))
				}
				next.ServeHTTP(w, r)
			})
		}
		var copied http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x.HTTP = r // its body is copied while it is read
			next.ServeHTTP(w, r)
		})
		for _, m := range rule.made {
			copied = m.Filter(copied)
		}
		return copied
	}
}

// withoutBody returns a copy of r without a body.
func withoutBody(r *http.Request) *http.Request {
	c := r.WithContext(r.Context())
	c.Header = r.Header.Clone()
	c.Header.Del("Content-Length")
	c.Body, c.ContentLength, c.TransferEncoding, c.Trailer = http.NoBody, 0, nil, nil
	return c
}
