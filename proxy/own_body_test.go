package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// incomparable is the body of a filter whose type has no ==.
type incomparable struct {
	io.ReadCloser
	_ []byte
}

// A body that Rewrite sets is refused, and not dropped in silence: neither is the target blamed. One of a filter is sent.
func TestBodyOfRewrite(t *testing.T) { onPaths(t, testBodyOfRewrite) }
func testBodyOfRewrite(t *testing.T, via path) {
	const get, post = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	set := func(body io.ReadCloser) func(*proxy.Outbound) {
		return func(o *proxy.Outbound) { o.Out.Body = body }
	}
	another := io.NopCloser(strings.NewReader("other"))
	for name, test := range map[string]struct {
		request string
		rewrite func(*proxy.Outbound)
		filter  bool
		want    int
	}{
		"none":              {get, set(nil), false, 200},
		"no body":           {get, set(http.NoBody), false, 200},
		"a body for none":   {get, set(another), false, 500},
		"another body":      {post, set(another), false, 500},
		"none for a body":   {post, set(nil), false, 500},
		"a copy of Out":     {post, func(o *proxy.Outbound) { o.Out = o.Out.Clone(o.Out.Context()) }, false, 200},
		"a filter's body":   {post, func(*proxy.Outbound) {}, true, 200},
		"another than that": {post, set(another), true, 500},
		"a type without ==": {post, func(o *proxy.Outbound) { o.Out.Body = incomparable{ReadCloser: another} }, false, 500},
	} {
		t.Run(name, func(t *testing.T) {
			var seen *culvert.Error
			p := newProxy(t, via, proxy.Options{
				Upstream: groupAt(t, upstream.Options{}, echoTarget(t, upstream.HTTP1)), Rewrite: test.rewrite,
				OnError: func(_ *http.Request, e *culvert.Error) { seen = e },
			})
			client := wiretest.Dial(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.filter {
					r.Body = incomparable{ReadCloser: r.Body}
				}
				p.ServeHTTP(w, r)
			})))
			client.Send(test.request)
			client.Status(test.want)
			if test.want == 500 && (seen == nil || seen.Kind != culvert.Internal || !strings.Contains(errors.Unwrap(seen).Error(), "Body")) {
				t.Errorf("the failure is %v", seen)
			}
		})
	}
}
