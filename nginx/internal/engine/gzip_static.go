package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// gzipStaticModule serves compressed files that stand beside the others (ngx_http_gzip_static_module.c).
var gzipStaticModule = module{
	directives: []directive{
		{name: "gzip_static", compile: setWord(gzipStaticSlot, func(p *precompressed) *precompressed { return p },
			map[string]precompressed{"on": whereAccepted, "always": always, "off": neverPrecompressed})},
	},
	active: func(l *level) bool { return *gzipStaticSlot.of(l) != neverPrecompressed },
	hooks:  hooks{content: serveCompressed},
}

var gzipStaticSlot = newSlot(neverPrecompressed)

// precompressed is gzip_static: files with ".gz" stand beside the others.
type precompressed int

const (
	neverPrecompressed precompressed = iota
	whereAccepted
	always
)

// serveCompressed serves the file's compressed version, if there is one and the client accepts it.
func serveCompressed(x *exchange, w http.ResponseWriter) (status int, done bool) {
	mode, method := *gzipStaticSlot.of(x.level), x.HTTP.Method
	if strings.HasSuffix(x.URI, "/") || method != http.MethodGet && method != http.MethodHead {
		return 0, false
	}
	takes := mode == always || takesGzip(x)
	f, dir, status := links(x).Open(filename(x, x.URI) + ".gz")
	if status != 0 || dir {
		return 0, false
	}
	defer f.Close()
	if mode == whereAccepted {
		x.gzip.depends = true // also that of an error page, if there is no other version
	}
	if !takes {
		return 0, false
	}
	x.rootTested = !x.failed
	w.Header().Set("Content-Encoding", "gzip")
	content := fileContent(x, f, typeOf(x))
	content.NoRanges = true
	static.Serve(w, x.HTTP, content)
	return 0, true
}
