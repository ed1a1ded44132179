package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// indexModule serves the index of a directory (ngx_http_index_module.c).
var indexModule = module{
	directives: []directive{
		{name: "index", repeatable: true, compile: index},
	},
	hooks: hooks{content: serveIndex},
}

var indexSlot = newSlot([]vars.Value{vars.Constant("index.html")})

// index compiles "index file ...". Names behind an absolute one are not looked for.
func index(c *compiler, l *level, d *conf.Directive) error {
	names := indexSlot.edit(l)
	if l.first("index") {
		*names = nil
	}
	for i, name := range d.Args {
		if name == "" {
			return d.Errorf("index \"%s\" in \"index\" directive is invalid", name)
		}
		if strings.HasPrefix(name, "/") && i < len(d.Args)-1 {
			c.warn(d, "only the last index in \"index\" directive should be absolute")
		}
		v, err := c.value(d, name)
		if err != nil {
			return err
		}
		*names = append(*names, v)
	}
	return nil
}

// serveIndex continues with the index of a directory, for a path that ends in a slash. A
// directory without one is left to the next module.
func serveIndex(x *exchange, w http.ResponseWriter) (status int, done bool) {
	if !strings.HasSuffix(x.URI, "/") || !readsFile(x.HTTP.Method) {
		return 0, false
	}
	uri, found := indexFile(x)
	if status := x.failedPattern(); status != 0 {
		return status, true
	}
	if found {
		return x.redirect(w, uri, x.Args), true
	}
	name := filename(x, x.URI)
	if status := links(x).Search(name); status != 0 {
		logOpen(x, name, status)
		return status, true
	}
	return 0, false
}

// indexFile finds the index of a directory and returns the path to continue with.
func indexFile(x *exchange) (uri string, found bool) {
	looked := false
	for _, v := range *indexSlot.of(x.level) {
		name := v.String(&x.Request)
		if strings.HasPrefix(name, "/") {
			return name, true
		}
		if links(x).Exists(filename(x, x.URI)+name, false) { // not that of the longer path: an alias may be made of captures
			return x.URI + name, true
		}
		if !looked && links(x).Search(filename(x, x.URI)) != 0 {
			break // not a readable directory: an absolute index is not used either
		}
		looked = true
	}
	return "", false
}
