package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// precompressed is gzip_static: files with ".gz" stand beside the others.
type precompressed int

const (
	neverPrecompressed precompressed = iota
	whereAccepted
	always
)

// gzipStatic compiles "gzip_static on|off|always".
func gzipStatic(_ *compiler, l *level, d *conf.Directive) error {
	switch d.Args[0] {
	case "on":
		l.gzipStatic = whereAccepted
	case "always":
		l.gzipStatic = always
	case "off":
		l.gzipStatic = neverPrecompressed
	default:
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	return nil
}

// precompressed serves the file's compressed version, if there is one and the client accepts it
// (ngx_http_gzip_static_module.c).
func (x *exchange) precompressed(w http.ResponseWriter, name string) (done bool) {
	if x.level.gzipStatic == neverPrecompressed {
		return false
	}
	takes := x.level.gzipStatic == always || x.takesGzip()
	f, info, dir, status := static.Open(name + ".gz")
	if status != 0 || dir {
		return false
	}
	defer f.Close()
	if x.level.gzipStatic == whereAccepted {
		w.Header().Add("Vary", "Accept-Encoding")
	}
	if !takes {
		return false
	}
	x.rootTested = !x.failed
	w.Header().Set("Content-Encoding", "gzip")
	static.Serve(w, x.HTTP, static.Content{File: f, Size: info.Size(), ModTime: info.ModTime(), Type: x.contentType(), Since: x.level.modifiedSince,
		NoETag: !x.level.etag, NoRanges: true, Whole: x.errStatus != 0 && x.errStatus != http.StatusOK})
	return true
}
