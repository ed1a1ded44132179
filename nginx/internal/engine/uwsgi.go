package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/uwsgi"
	"github.com/culvert-go/culvert/upstream"
)

// uwsgiFamily sends requests by the protocol of uWSGI (ngx_http_uwsgi_module.c).
var uwsgiFamily = &family{
	name:         "uwsgi",
	slot:         newSlot(cgiDefaults()),
	lengths:      true,
	schemes:      []urlScheme{{prefix: "uwsgi://"}, {prefix: "suwsgi://", secure: true}, {}},
	noTrailers:   true,
	roundTripper: uwsgiTransport,
	outbound:     plain,
}

var uwsgiModule = module{
	directives: uwsgiFamily.named(uwsgiFamily.connections(), uwsgiFamily.responses(), uwsgiFamily.stores(), uwsgiFamily.bodies(), uwsgiFamily.certificates(), uwsgiFamily.params(), []directive{
		{name: "modifier1", compile: uwsgiModifier(func(s *uwsgiSettings) *byte { return &s.modifier1 })},
		{name: "modifier2", compile: uwsgiModifier(func(s *uwsgiSettings) *byte { return &s.modifier2 })},
		{name: "string", compile: setText(uwsgiFamily.slot, func(s *proxySettings) *string { return &s.params.uwsgi.text })},
	}),
}

// uwsgiSettings are the directives that only uwsgi has.
type uwsgiSettings struct {
	modifier1, modifier2 byte
	text                 string // uwsgi_string
}

func uwsgiModifier(field func(*uwsgiSettings) *byte) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) error {
		n, ok := conf.Number(d.Args[0])
		if !ok || n > 255 {
			return d.Errorf("value must be between 0 and 255")
		}
		*field(&uwsgiFamily.slot.edit(l).params.uwsgi) = byte(n)
		return nil
	}
}

func uwsgiTransport(e *Engine, p *passRule, t *upstream.Transport, g *group) http.RoundTripper {
	s := p.settings().params.uwsgi
	return e.over(p, uwsgi.Protocol(uwsgi.Options{Params: p.family.paramsOf, Modifier1: s.modifier1, Modifier2: s.modifier2, Raw: s.text}), t, g, false)
}
