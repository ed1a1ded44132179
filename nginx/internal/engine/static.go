package engine

import (
	"math"
	"net/http"
	"path"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// staticModule serves files (ngx_http_static_module.c): it is the last module of content.
var staticModule = module{
	directives: []directive{
		{name: "etag", compile: setFlag(staticSlot, func(s *staticSettings) *bool { return &s.etag })},
		{name: "if_modified_since", compile: setWord(staticSlot, func(s *staticSettings) *static.Since { return &s.since },
			map[string]static.Since{"exact": static.Exact, "before": static.Before, "off": static.Ignored})},
		{name: "log_not_found", compile: setFlag(staticSlot, func(s *staticSettings) *bool { return &s.logNotFound })},
		{name: "max_ranges", compile: maxRanges},
	},
	hooks: hooks{content: serveStatic},
}

type staticSettings struct {
	etag   bool
	since  static.Since // if_modified_since
	ranges int          // max_ranges

	logNotFound bool // a file that does not exist is an error
}

var staticSlot = newSlot(staticSettings{etag: true, ranges: math.MaxInt, logNotFound: true})

// maxRanges compiles "max_ranges number".
func maxRanges(_ *compiler, l *level, d *conf.Directive) (err error) {
	staticSlot.edit(l).ranges, err = d.Number()
	return err
}

// serveStatic serves a file of root or alias.
func serveStatic(x *exchange, w http.ResponseWriter) (status int, done bool) {
	if !readsFile(x.HTTP.Method) {
		return http.StatusMethodNotAllowed, true
	}
	if strings.HasSuffix(x.URI, "/") {
		x.logError("directory index of \"" + filename(x, x.URI) + "\" is forbidden")
		return http.StatusForbidden, true
	}
	name := filename(x, x.URI)
	f, dir, status := links(x).Open(name)
	if status != 0 {
		logOpen(x, name, status)
		return status, true
	}
	x.rootTested = !x.failed
	if dir {
		return redirectTo(x, w, route.Escape(x.URI)+"/"), true
	}
	defer f.Close()
	if x.HTTP.Method == http.MethodPost {
		return http.StatusMethodNotAllowed, true
	}
	if status := discardBody(x); status != 0 {
		return status, true
	}
	return static.Serve(w, x.HTTP, fileContent(x, f, contentTypeOf(x, w.Header()))), true
}

// readsFile reports whether a request of the method may lead to a file.
func readsFile(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodPost
}

// fileContent describes a file as the level serves it.
func fileContent(x *exchange, f *static.File, contentType string) static.Content {
	s := staticSlot.of(x.level)
	timeout := clientBodySlot.of(x.level).sendTimeout
	if limitsRate(x) { // then it is the server that is slow
		timeout = 0
	}
	partType, ranges := charsetOfParts(x, contentType, s.ranges)
	return static.Content{
		SendTimeout: timeout,

		File:      f,
		Size:      f.Size,
		ModTime:   f.ModTime,
		Shown:     shownTime(x),
		Type:      contentType,
		PartType:  partType,
		Since:     s.since,
		NoETag:    !s.etag,
		NoRanges:  s.ranges == 0 || f.Size > 0 && changesContent(x, contentType),
		MaxRanges: ranges,
		Whole:     x.errStatus != 0 && x.errStatus != http.StatusOK,
	}
}

// changesContent reports whether a filter will change content of the type, so that no part of it can be sent.
func changesContent(x *exchange, t string) bool {
	return subSlot.of(x.level).changes(t) || x.recodes(t) || ssiSlot.of(x.level).changes(t) || additionSlot.of(x.level).changes(t)
}

// logOpen logs that a file can't be served.
func logOpen(x *exchange, name string, status int) { logFailed(x, "open", name, status) }

// logFailed logs that a system call has failed for a file.
func logFailed(x *exchange, call, name string, status int) {
	if status == http.StatusNotFound && !staticSlot.of(x.level).logNotFound {
		return
	}
	why := map[int]string{
		http.StatusNotFound:  "2: No such file or directory",
		http.StatusForbidden: "13: Permission denied",
	}[status]
	if why == "" {
		why = "5: Input/output error"
	}
	x.logError(call + "() \"" + path.Clean(name) + "\" failed (" + why + ")")
}
