package engine

import (
	"context"
	"net/http"
	"slices"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
)

// mirrorRule is mirror and mirror_request_body (ngx_http_mirror_module.c).
type mirrorRule struct {
	targets []string
	without bool // mirror_request_body off
	made    []*filters.Mirror
}

// maxMirrored bounds the body that is kept for a copy.
const maxMirrored = 1 << 20

// mirrorDirective compiles "mirror uri|off".
func mirrorDirective(_ *compiler, l *level, d *conf.Directive) error {
	if l.first("mirror") {
		l.mirror.targets = nil
	}
	if d.Args[0] != "off" {
		l.mirror.targets = append(slices.Clip(l.mirror.targets), d.Args[0])
	}
	return nil
}

func mirrorRequestBody(_ *compiler, l *level, d *conf.Directive) error {
	l.mirror.without = !d.Flag()
	return nil
}

// finishMirror creates the mirrors of a level that has set some.
func (c *compiler) finishMirror(l *level) error {
	if !l.own["mirror"] {
		return nil
	}
	l.mirror.made = nil
	for _, target := range l.mirror.targets {
		m, err := filters.NewMirror(filters.MirrorOptions{
			MaxBody: maxMirrored,
			Context: func(ctx context.Context, r *http.Request) context.Context {
				return exchangeOf(r.Context()).branch(ctx, target).HTTP.Context()
			},
			To: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				sub := exchangeOf(r.Context())
				sub.HTTP = r
				sub.serveSubrequest()
			}),
		})
		if err != nil {
			return err
		}
		l.mirror.made = append(l.mirror.made, m)
		c.engine.mirrors = append(c.engine.mirrors, m)
	}
	return nil
}

// mirrored serves the request and sends copies of it to the URIs of mirror.
func (x *exchange) mirrored(w http.ResponseWriter) (status int) {
	rule := &x.level.mirror
	if len(rule.made) == 0 || x.main != nil {
		return x.content(w)
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.HTTP = r
		status = x.content(w)
	})
	for _, m := range rule.made {
		if rule.without {
			m.Filter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(nil, withoutBody(x.HTTP))
			continue
		}
		handler = m.Filter(handler)
	}
	handler.ServeHTTP(w, x.HTTP)
	return status
}

// withoutBody returns a copy of r without a body.
func withoutBody(r *http.Request) *http.Request {
	c := r.WithContext(r.Context())
	c.Header = r.Header.Clone()
	c.Header.Del("Content-Length")
	c.Body, c.ContentLength, c.TransferEncoding, c.Trailer = http.NoBody, 0, nil, nil
	return c
}
