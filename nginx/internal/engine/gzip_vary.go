package engine

import (
	"net/http"
	"slices"

	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/nginx/conf"
)

// gzipVaryModule says in Vary that a response depends on whether its client accepts gzip.
var gzipVaryModule = module{
	directives: []directive{{name: "gzip_vary", compile: gzipVary}},
	hooks:      hooks{header: varyOnGzip},
}

// varyRule is a gzip_vary.
type varyRule int

const (
	variesOnce  varyRule = iota // the file says nothing: such a response has Vary, so that no cache serves it to other clients
	variesAgain                 // a line of nginx's own, also beside the upstream's
	neverVaries
)

var gzipVarySlot = newSlot(variesOnce)

// gzipVary compiles "gzip_vary on|off".
func gzipVary(_ *compiler, l *level, d *conf.Directive) error {
	*gzipVarySlot.edit(l) = neverVaries
	if d.Flag() {
		*gzipVarySlot.edit(l) = variesAgain
	}
	return nil
}

// dependsOnGzip notes that the response, of which h is the header, depends on whether the client accepts gzip. It is called before
// a filter adds to Vary.
func (x *exchange) dependsOnGzip(h http.Header) {
	x.gzip.depends = true
	if !x.gzip.counted {
		x.gzip.counted, x.gzip.vary = true, len(h["Vary"])
	}
}

// varyOnGzip replaces what a filter has added to Vary by what gzip_vary says. Its line is the first, as in nginx.
func varyOnGzip(x *exchange, h http.Header) {
	if !x.gzip.depends {
		return
	}
	lines := slices.Clone(h["Vary"])
	if x.gzip.counted {
		lines = lines[:min(x.gzip.vary, len(lines))]
	}
	switch rule := *gzipVarySlot.of(x.level); {
	case rule == variesAgain, rule == variesOnce && !httpheader.HasToken(lines, "Accept-Encoding") && !slices.Contains(lines, "*"):
		lines = slices.Insert(lines, 0, "Accept-Encoding")
		x.gzip.varies = true
	}
	if delete(h, "Vary"); len(lines) > 0 {
		h["Vary"] = lines
	}
}
