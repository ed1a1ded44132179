package engine

import (
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

func proxySetBody(c *compiler, l *level, d *conf.Directive) error {
	v, err := c.value(d, d.Args[0])
	proxySlot.edit(l).body = &v
	return err
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
