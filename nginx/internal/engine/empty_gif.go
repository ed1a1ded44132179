package engine

import (
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
)

// emptyGIFModule serves a transparent picture of one pixel (ngx_http_empty_gif_module.c).
var emptyGIFModule = module{
	directives: []directive{
		{name: "empty_gif", compile: func(_ *compiler, l *level, _ *conf.Directive) error {
			*emptyGIFSlot.edit(l) = true
			return nil
		}},
	},
	active: func(l *level) bool { return *emptyGIFSlot.of(l) },
	hooks:  hooks{content: serveEmptyGIF},
}

var emptyGIFSlot = newLocalSlot[bool]()

// emptyGIF is of version 89a (https://www.w3.org/Graphics/GIF/spec-gif89a.txt).
const emptyGIF = "GIF89a" +
	"\x01\x00\x01\x00\x80\x01\x00" + // 1 x 1, two colors, background 1
	"\x00\x00\x00\xff\xff\xff" + // black and white
	"!\xf9\x04\x01\x00\x00\x01\x00" + // color 1 is transparent
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00" + // a picture at 0, 0
	"\x02\x02L\x01\x00" + // its pixel
	";"

func serveEmptyGIF(x *exchange, w http.ResponseWriter) (status int, done bool) {
	if x.HTTP.Method != http.MethodGet && x.HTTP.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, true
	}
	h := w.Header()
	h.Set("Content-Type", "image/gif")
	h.Set("Content-Length", strconv.Itoa(len(emptyGIF)))
	modified := time.Date(1970, 9, 28, 6, 0, 0, 0, time.UTC) // as nginx's
	h.Set("Last-Modified", modified.Format(http.TimeFormat))
	switch status := static.Untagged(x.HTTP.Header, modified, staticSlot.of(x.level).since); status {
	case 0:
	case http.StatusNotModified:
		h.Del("Content-Length")
		h["Content-Type"] = nil
		w.WriteHeader(status)
		return 0, true
	default:
		return status, true
	}
	w.WriteHeader(http.StatusOK)
	if x.HTTP.Method == http.MethodGet {
		_, _ = w.Write([]byte(emptyGIF))
	}
	return 0, true
}
