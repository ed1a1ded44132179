package engine

import (
	"maps"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// defaultTypes are the types of a configuration without a types block
// (ngx_http_core_default_types).
func defaultTypes() map[string]string {
	return map[string]string{"html": "text/html", "gif": "image/gif", "jpg": "image/jpeg"}
}

// types compiles a types block: "text/html html htm;" on each line. Blocks of one level add up,
// and together replace those of the outer levels.
func types(_ *compiler, l *level, d *conf.Directive) error {
	next := map[string]string{}
	if !l.first("types") {
		next = maps.Clone(l.types)
	}
	for _, row := range d.Block {
		for _, ext := range row.Args {
			next[strings.ToLower(ext)] = row.Name
		}
	}
	l.types = next
	return nil
}

func defaultType(_ *compiler, l *level, d *conf.Directive) error {
	l.defaultType = d.Args[0]
	return nil
}
