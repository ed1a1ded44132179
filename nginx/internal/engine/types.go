package engine

import (
	"maps"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// typesModule maps the extensions of files to types.
var typesModule = module{
	directives: []directive{
		{name: "default_type", compile: setText(typesSlot, func(s *typeSettings) *string { return &s.standard })},
		{name: "types", repeatable: true, compile: types},
	},
}

type typeSettings struct {
	byExtension map[string]string
	standard    string // default_type
}

// typesSlot has the types of a configuration without a types block (ngx_http_core_default_types).
var typesSlot = newSlot(typeSettings{
	byExtension: map[string]string{"html": "text/html", "gif": "image/gif", "jpg": "image/jpeg"},
	standard:    "text/plain",
})

// types compiles a types block: "text/html html htm;" on each line. Blocks of one level add up,
// and together replace those of the outer levels.
func types(_ *compiler, l *level, d *conf.Directive) error {
	s := typesSlot.edit(l)
	next := map[string]string{}
	if !l.first("types") {
		next = maps.Clone(s.byExtension)
	}
	for _, row := range d.Block {
		for _, ext := range row.Args {
			next[strings.ToLower(ext)] = row.Name
		}
	}
	s.byExtension = next
	return nil
}

// typeOf returns the type of the path's extension on this level.
func typeOf(x *exchange) string {
	s := typesSlot.of(x.level)
	if ext := static.Extension(x.URI); ext != "" {
		if t, ok := s.byExtension[strings.ToLower(ext)]; ok {
			return t
		}
	}
	return s.standard
}

// contentTypeOf returns that of typeOf, unless an upstream has led here and set a type.
func contentTypeOf(x *exchange, h http.Header) string {
	if x.proxy.diverted != nil && x.proxy.diverted.uri != "" && h.Get("Content-Type") != "" {
		return h.Get("Content-Type")
	}
	return typeOf(x)
}

// setContentType sets the type of a response without a file. An empty one keeps net/http from
// guessing one.
func setContentType(x *exchange, h http.Header) {
	if t := typeOf(x); t != "" {
		h.Set("Content-Type", t)
		return
	}
	h["Content-Type"] = nil
}
