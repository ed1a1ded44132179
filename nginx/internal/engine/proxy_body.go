package engine

import (
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

func (f *family) setBody(c *compiler, l *level, d *conf.Directive) error {
	v, err := c.value(d, d.Args[0])
	f.slot.edit(l).body = &v
	return err
}

// takeBody gives the locations that x is redirected to what an upstream has left of a body that was streamed: its reads fail.
// The rest of it, or nothing, would look whole.
func (x *exchange) takeBody(body io.ReadCloser) {
	if s := x.passSettings(); x.proxy.body == nil && s.body == nil && s.passBody {
		x.HTTP.Body = body
	}
}

// reshape returns the request for the upstream: with another method and another body if these are
// configured. r may be the client's own, which is not changed.
func (s *proxySettings) reshape(x *exchange, r *http.Request) *http.Request {
	method := s.method.String(&x.Request)
	if method == "" && s.body == nil && s.passBody {
		return r
	}
	changed := r.WithContext(r.Context())
	if method != "" {
		changed.Method = method
	}
	if s.body == nil && s.passBody {
		return changed
	}
	changed.Header = r.Header.Clone()
	changed.Header.Del("Content-Length")
	changed.TransferEncoding, changed.Trailer = nil, nil
	changed.Body, changed.ContentLength = http.NoBody, 0
	if s.body != nil {
		text := s.body.String(&x.Request)
		changed.Body, changed.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
	return changed
}
