package engine

import (
	"net/http"
	"path"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// static serves a file of root or alias: the content of a location without proxy_pass and return.
func (x *exchange) static(w http.ResponseWriter) int {
	method := x.HTTP.Method
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodPost {
		return http.StatusMethodNotAllowed
	}
	if strings.HasSuffix(x.URI, "/") {
		return x.directory(w)
	}
	name := x.filename(x.URI)
	if method != http.MethodPost && x.precompressed(w, name) {
		return 0
	}
	f, info, dir, status := static.Open(name)
	if status != 0 {
		x.logOpen(name, status)
		return status
	}
	x.rootTested = !x.failed
	if dir {
		return x.redirectTo(w, route.Escape(x.URI)+"/")
	}
	defer f.Close()
	if method == http.MethodPost {
		return http.StatusMethodNotAllowed
	}
	whole := x.errStatus != 0 && x.errStatus != http.StatusOK
	return static.Serve(w, x.HTTP, static.Content{
		File:     f,
		Size:     info.Size(),
		ModTime:  info.ModTime(),
		Type:     x.contentTypeOf(w.Header()),
		Since:    x.level.modifiedSince,
		NoETag:   !x.level.etag,
		NoRanges: x.level.sub.changes(x.contentType()), // the content will be changed
		Whole:    whole,
	})
}

// directory serves a path that ends in a slash: the directory's index, or its listing.
func (x *exchange) directory(w http.ResponseWriter) int {
	uri, found := x.indexFile(func(name string) bool { return static.Exists(name, false) })
	if found {
		return x.redirect(w, uri, x.Args)
	}
	name := x.filename(x.URI)
	if status := static.Search(name); status != 0 {
		x.logOpen(name, status)
		return status
	}
	if x.level.autoindex.lists(x.HTTP.Method) {
		return x.list(w, name)
	}
	x.logError("directory index of \"" + name + "\" is forbidden")
	return http.StatusForbidden
}

// contentType returns the type of the path's extension on this level.
func (x *exchange) contentType() string {
	if ext := static.Extension(x.URI); ext != "" {
		if t, ok := x.level.types[strings.ToLower(ext)]; ok {
			return t
		}
	}
	return x.level.defaultType
}

// contentTypeOf returns contentType, unless an upstream has led here and set a type.
func (x *exchange) contentTypeOf(h http.Header) string {
	if x.diverted != nil && x.diverted.uri != "" && h.Get("Content-Type") != "" {
		return h.Get("Content-Type")
	}
	return x.contentType()
}

// setContentType sets the type of a response without a file. An empty one keeps net/http from
// guessing one.
func (x *exchange) setContentType(h http.Header) {
	if t := x.contentType(); t != "" {
		h.Set("Content-Type", t)
		return
	}
	h["Content-Type"] = nil
}

// logOpen logs that a file can't be served.
func (x *exchange) logOpen(name string, status int) { x.logFailed("open", name, status) }

// logFailed logs that a system call has failed for a file.
func (x *exchange) logFailed(call, name string, status int) {
	why := map[int]string{
		http.StatusNotFound:  "2: No such file or directory",
		http.StatusForbidden: "13: Permission denied",
	}[status]
	if why == "" {
		why = "5: Input/output error"
	}
	x.logError(call + "() \"" + path.Clean(name) + "\" failed (" + why + ")")
}
