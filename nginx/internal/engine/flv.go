package engine

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// flvModule serves Flash Video from the byte that the argument start names (ngx_http_flv_module.c).
var flvModule = module{
	directives: []directive{
		{name: "flv", compile: func(_ *compiler, l *level, _ *conf.Directive) error {
			*flvSlot.edit(l) = true
			return nil
		}},
	},
	active: func(l *level) bool { return *flvSlot.of(l) },
	hooks:  hooks{content: serveFLV},
}

var flvSlot = newLocalSlot[bool]()

// flvHeader begins a file with audio and video.
const flvHeader = "FLV\x01\x05\x00\x00\x00\x09\x00\x00\x00\x00"

func serveFLV(x *exchange, w http.ResponseWriter) (status int, done bool) {
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
	text, _ := vars.Argument(x.Args, "start")
	if start, err := strconv.ParseUint(text, 10, 63); err == nil && start > 0 && int64(start) < f.Size {
		content.Prefix, content.Skip = flvHeader, int64(start)
		content.Size = int64(len(flvHeader)) + f.Size - int64(start)
	}
	return static.Serve(w, x.HTTP, content), true
}
