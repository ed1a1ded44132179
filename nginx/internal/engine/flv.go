package engine

import (
	"net/http"
	"strconv"

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
	return serveFilm(x, w, func(_ string, c *static.Content) int {
		text, _ := vars.Argument(x.Args, "start")
		if start, err := strconv.ParseUint(text, 10, 63); err == nil && start > 0 && int64(start) < c.Size {
			c.Prefix, c.Skip = flvHeader, int64(start)
			c.Size += int64(len(flvHeader)) - c.Skip
		}
		return 0
	})
}
