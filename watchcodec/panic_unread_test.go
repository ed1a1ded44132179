package watchcodec_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestPanicBesideAnUnsentBody: after a panic net/http's server reads the rest of the request's body
// before it closes the connection. A client that sends nothing of the body does not hold the
// connection.
func TestPanicBesideAnUnsentBody(t *testing.T) {
	filter := must(watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		panic("a bug")
	}}))
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		wiretest.Unsent(t, filter(http.NotFoundHandler()), "POST "+carpsPath+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
	})
}
