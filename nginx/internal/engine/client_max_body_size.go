package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
)

// clientMaxBodySize compiles "client_max_body_size size"; 0 is no limit.
func clientMaxBodySize(_ *compiler, l *level, d *conf.Directive) error {
	n, ok := conf.Size(d.Args[0])
	if !ok {
		return d.Invalid()
	}
	l.bodyLimit = n
	return nil
}

// limitBody refuses a request whose announced content is too large, and bounds what is read of a
// chunked one: the proxy responds with 413 at the bound.
func (x *exchange) limitBody(w http.ResponseWriter) int {
	limit := x.level.bodyLimit
	if limit == 0 || x.HTTP.Body == nil || x.HTTP.Body == http.NoBody {
		return 0
	}
	if x.HTTP.ContentLength > limit {
		x.logError("client intended to send too large body")
		return http.StatusRequestEntityTooLarge
	}
	if x.HTTP.ContentLength < 0 {
		x.HTTP.Body = http.MaxBytesReader(w, x.HTTP.Body, limit)
	}
	return 0
}
