package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/nginx/conf"
)

// addTrailerModule adds trailers.
var addTrailerModule = module{
	directives: []directive{
		{name: "add_trailer", repeatable: true, compile: addTrailer},
	},
	active: func(l *level) bool { return len(*addTrailerSlot.of(l)) > 0 },
	hooks:  hooks{header: announceTrailers, log: sendTrailers},
}

var addTrailerSlot = newSlot([]header(nil))

// addTrailer compiles "add_trailer name value [always]".
func addTrailer(c *compiler, l *level, d *conf.Directive) error {
	return appendHeader(c, l, d, addTrailerSlot)
}

// announceTrailers prepares the header for the trailers, which need a chunked response.
func announceTrailers(x *exchange, h http.Header) {
	trailers := *addTrailerSlot.of(x.level)
	if len(trailers) == 0 || !*chunkedSlot.of(x.level) || x.Status == http.StatusSwitchingProtocols || x.HTTP.Method == http.MethodHead || !x.HTTP.ProtoAtLeast(1, 1) {
		return
	}
	ok := cachectl.AddHeaderStatus(x.Status)
	for _, t := range trailers {
		if ok || t.always {
			h[http.TrailerPrefix+t.name] = nil
			delete(h, "Content-Length")
		}
	}
}

// sendTrailers sets the trailers when the content has been sent.
func sendTrailers(x *exchange) {
	h := x.Header
	for _, t := range *addTrailerSlot.of(x.level) {
		if _, announced := h[http.TrailerPrefix+t.name]; announced {
			if value := t.value.String(&x.Request); value != "" && x.failedPattern() == 0 {
				h.Add(http.TrailerPrefix+t.name, value)
			}
			if len(h[http.TrailerPrefix+t.name]) == 0 { // without a value, net/http makes an HTTP/2 stream that does not end
				delete(h, http.TrailerPrefix+t.name)
			}
		}
	}
}
