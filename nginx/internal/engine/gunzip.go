package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// gunzipModule decompresses responses (ngx_http_gunzip_filter_module.c).
var gunzipModule = module{
	directives: []directive{
		{name: "gunzip", compile: setFlag(gunzipSlot, func(s *gunzipSettings) *bool { return &s.on })},
	},
	merge:  makeGunzip,
	active: func(l *level) bool { return gunzipSlot.of(l).filter != nil },
	hooks:  hooks{body: decompress},
}

type gunzipSettings struct {
	on     bool
	filter culvert.Filter // nil where it is off
}

var gunzipSlot = newSlot(gunzipSettings{})

// markGzip says of compressed responses that they depend on the client: others get them decompressed.
var markGzip = filters.OnResponse(filters.ResponseHooks{Header: func(r *http.Request, _ int, h http.Header) {
	if strings.EqualFold(h.Get("Content-Encoding"), "gzip") {
		exchangeOf(r.Context()).dependsOnGzip(h)
	}
}})

// makeGunzip creates the filter of a level that has set something.
func makeGunzip(_ *compiler, l *level) (err error) {
	if !gunzipSlot.own(l) {
		return nil
	}
	s := gunzipSlot.edit(l)
	s.filter = nil
	if s.on {
		s.filter, err = filters.Decompress(filters.DecompressOptions{Responses: true})
	}
	return err
}

// decompress decompresses responses that an upstream has compressed for a client that does not
// accept gzip.
func decompress(x *exchange) culvert.Filter {
	s := gunzipSlot.of(x.level)
	if takesGzip(x) {
		return markGzip
	}
	return func(next http.Handler) http.Handler { return s.filter(markGzip(next)) }
}

// takesGzip reports whether the client accepts gzip and none of gzip's directives excludes it
// (ngx_http_gzip_ok).
func takesGzip(x *exchange) bool {
	if x.main != nil { // its content becomes a part of another
		return false
	}
	if !acceptsGzip(strings.Join(x.HTTP.Header["Accept-Encoding"], ",")) {
		return false
	}
	return gzipSlot.of(x.level).forClient(x.HTTP, x.w.Header())
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
