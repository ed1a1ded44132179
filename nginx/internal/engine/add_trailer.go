package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/nginx/conf"
)

// addTrailer compiles "add_trailer name value [always]".
func addTrailer(c *compiler, l *level, d *conf.Directive) error {
	if l.first("add_trailer") {
		l.addTrailers = nil
	}
	h, err := c.header(d)
	l.addTrailers = append(l.addTrailers, h)
	return err
}

// announceTrailers prepares the header for the trailers, which need a chunked response.
func (l *level) announceTrailers(x *exchange, h http.Header) {
	if len(l.addTrailers) == 0 || x.HTTP.Method == http.MethodHead || !x.HTTP.ProtoAtLeast(1, 1) {
		return
	}
	ok := cachectl.AddHeaderStatus(x.Status)
	for _, t := range l.addTrailers {
		if ok || t.always {
			h[http.TrailerPrefix+t.name] = nil
			delete(h, "Content-Length")
		}
	}
}

// sendTrailers sets the trailers when the content has been sent.
func (l *level) sendTrailers(x *exchange, h http.Header) {
	for _, t := range l.addTrailers {
		if _, announced := h[http.TrailerPrefix+t.name]; announced {
			if value := t.value.String(&x.Request); value != "" {
				h.Add(http.TrailerPrefix+t.name, value)
			}
			if len(h[http.TrailerPrefix+t.name]) == 0 { // without a value, net/http makes an HTTP/2 stream that does not end
				delete(h, http.TrailerPrefix+t.name)
			}
		}
	}
}
