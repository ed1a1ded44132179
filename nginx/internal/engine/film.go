package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// serveFilm serves the file of a request, or a part of it, for flv and mp4. Folders are left to the modules behind.
// choose changes what is sent of the file name, and returns 0 or the status of an error page.
func serveFilm(x *exchange, w http.ResponseWriter, choose func(name string, c *static.Content) (status int)) (status int, done bool) {
	switch {
	case x.HTTP.Method != http.MethodGet && x.HTTP.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, true
	case strings.HasSuffix(x.URI, "/"):
		return 0, false
	}
	name := filename(x, x.URI)
	f, dir, status := links(x).Open(name)
	if status != 0 {
		logOpen(x, name, status)
		return status, true
	}
	if dir {
		return 0, false
	}
	defer f.Close()
	x.rootTested = !x.failed
	content := fileContent(x, f, contentTypeOf(x, w.Header()))
	if status := choose(name, &content); status != 0 {
		return status, true
	}
	return static.Serve(w, x.HTTP, content), true
}
