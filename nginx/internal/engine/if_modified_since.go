package engine

import (
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// ifModifiedSince compiles "if_modified_since off|exact|before".
func ifModifiedSince(_ *compiler, l *level, d *conf.Directive) error {
	since, ok := map[string]static.Since{"exact": static.Exact, "before": static.Before, "off": static.Ignored}[d.Args[0]]
	if !ok {
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	l.modifiedSince = since
	return nil
}

// etagDirective compiles "etag on|off", for files.
func etagDirective(_ *compiler, l *level, d *conf.Directive) error {
	l.etag = d.Flag()
	return nil
}
