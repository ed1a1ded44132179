package engine

import (
	"errors"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/fastcgi"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
	"github.com/culvert-go/culvert/upstream"
)

// fastCGIFamily sends requests by FastCGI (ngx_http_fastcgi_module.c).
var fastCGIFamily = &family{
	name:         "fastcgi",
	slot:         newSlot(cgiDefaults()),
	schemes:      []urlScheme{{}},
	hidden:       []string{"Status"},
	noTrailers:   true,
	roundTripper: fastCGITransport,
	outbound:     plain,
}

var fastCGIModule = module{
	directives: fastCGIFamily.named(fastCGIFamily.connections(), fastCGIFamily.responses(), fastCGIFamily.stores(), fastCGIFamily.bodies(), fastCGIFamily.params(), []directive{
		{name: "catch_stderr", repeatable: true, compile: fastCGICatchStderr},
		{name: "index", compile: setText(fastCGIFamily.slot, func(s *proxySettings) *string { return &s.params.fastCGI.index })},
		{name: "keep_conn", compile: setFlag(fastCGIFamily.slot, func(s *proxySettings) *bool { return &s.params.fastCGI.keepConn })},
		{name: "split_path_info", compile: fastCGISplitPathInfo},
	}),
	variables: map[string]variable{
		"fastcgi_script_name": known(func(x *exchange) string { name, _ := fastCGISplit(x); return name }),
		"fastcgi_path_info":   known(func(x *exchange) string { _, info := fastCGISplit(x); return info }),
	},
}

// fastCGISettings are the directives that only FastCGI has.
type fastCGISettings struct {
	index    string
	keepConn bool
	split    *pcre.Regexp
	caught   []string // fastcgi_catch_stderr
}

// fastCGICatchStderr compiles "fastcgi_catch_stderr text".
func fastCGICatchStderr(_ *compiler, l *level, d *conf.Directive) error {
	s := &fastCGIFamily.slot.edit(l).params.fastCGI
	if l.first(d.Name) {
		s.caught = nil
	}
	s.caught = append(s.caught, d.Args[0])
	return nil
}

// fastCGISplitPathInfo compiles "fastcgi_split_path_info regex".
func fastCGISplitPathInfo(c *compiler, l *level, d *conf.Directive) error {
	re, err := pattern(d, d.Args[0], false)
	if err != nil {
		return err
	}
	if re.Groups() != 2 {
		return d.Errorf("pattern \"%s\" must have 2 captures", d.Args[0])
	}
	c.engine.backtracks = c.engine.backtracks || re.Backtracks()
	fastCGIFamily.slot.edit(l).params.fastCGI.split = re
	return nil
}

// fastCGISplit returns $fastcgi_script_name and $fastcgi_path_info.
func fastCGISplit(x *exchange) (name, info string) {
	s := &fastCGIFamily.slot.of(x.level).params.fastCGI
	name = x.URI
	if s.split != nil {
		if groups := x.match(s.split, x.URI); groups != nil {
			name, info = groups[1], groups[2]
		}
	}
	if strings.HasSuffix(name, "/") {
		name += s.index
	}
	return name, info
}

// errCaught is the error of a response that fastcgi_catch_stderr gives up.
var errCaught = errors.New("FastCGI sent a text of \"fastcgi_catch_stderr\" in stderr")

func fastCGITransport(e *Engine, p *passRule, t *upstream.Transport, g *group) http.RoundTripper {
	s := p.settings().params.fastCGI
	stderr := func(r *http.Request, text []byte) error { return s.stderr(exchangeOf(r.Context()), text) }
	return e.over(p, fastcgi.Protocol(fastcgi.Options{Params: p.family.paramsOf, KeepConn: s.keepConn, Stderr: stderr}), t, g, s.keepConn)
}

// stderr logs what a program has written to its standard error.
func (s *fastCGISettings) stderr(x *exchange, text []byte) error {
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\n\r"), "\n") {
		x.logError("FastCGI sent in stderr: \"" + strings.TrimRight(line, "\r") + "\" while reading response header from upstream")
	}
	for _, caught := range s.caught {
		if strings.Contains(string(text), caught) {
			return errCaught
		}
	}
	return nil
}
