package engine

import (
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
)

// gunzipDirective compiles "gunzip on|off": responses that an upstream has compressed are
// decompressed for clients that don't accept gzip (ngx_http_gunzip_filter_module.c).
func gunzipDirective(_ *compiler, l *level, d *conf.Directive) error {
	l.gunzip = d.Flag()
	return nil
}

// gunzipFilter returns the filter, nil if it is off or the client accepts gzip.
func (x *exchange) gunzipFilter() culvert.Filter {
	if !x.level.gunzip || x.takesGzip() {
		return nil
	}
	return x.engine.gunzip
}

// takesGzip reports whether the client accepts gzip and none of gzip's directives excludes it
// (ngx_http_gzip_ok).
func (x *exchange) takesGzip() bool {
	if !acceptsGzip(strings.Join(x.HTTP.Header["Accept-Encoding"], ",")) {
		return false
	}
	return x.level.gzip.forClient(x.HTTP, x.w.Header())
}

// acceptsGzip reports whether field has gzip with a weight above 0 (RFC 9110 section 12.5.3).
func acceptsGzip(field string) bool {
	accepted := false
	for item := range strings.SplitSeq(strings.ToLower(field), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(item), ";")
		weight = strings.ReplaceAll(weight, " ", "")
		refused := strings.HasPrefix(weight, "q=0") && strings.Trim(weight, "q=0.") == ""
		switch strings.TrimSpace(coding) {
		case "gzip":
			return !refused
		case "*":
			accepted = !refused
		}
	}
	return accepted
}
