package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client that accepts nothing of an ErrorHandler's page holds neither handler nor connection, however long the page is.
func TestErrorPageThatIsNotAccepted(t *testing.T) {
	for name, size := range map[string]int{"short": 10, "long": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProxy(t, proxy.Options{
					Upstream: groupOf(t, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", Down: true}),
					ErrorHandler: func(w http.ResponseWriter, _ *http.Request, e *proxy.Error) {
						w.WriteHeader(e.Status())
						_, _ = io.WriteString(w, strings.Repeat("x", size))
					},
				})
				wiretest.NotAccepted(t, p, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			})
		})
	}
}
