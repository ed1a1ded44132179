package filters_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// panickyMetrics is Metrics whose RequestStarted panics.
type panickyMetrics struct{}

func (panickyMetrics) RequestStarted(*http.Request)                    { panic("a bug") }
func (panickyMetrics) RequestEnded(*http.Request, filters.Observation) {}

// TestPanicBesideAnUnsentBody: after a panic net/http's server continues to read the request's body before it closes the
// connection. A client that sends none of it can't hold the connection.
func TestPanicBesideAnUnsentBody(t *testing.T) {
	recovers := filters.Recover(slog.New(slog.DiscardHandler))
	for name, h := range map[string]http.Handler{
		"RequestStarted": filters.Observe(panickyMetrics{})(http.NotFoundHandler()),
		"RecordsOptions.Rewrite": good(t)(filters.Records(filters.RecordsOptions{Rewrite: func(*http.Request) func([]byte) ([]byte, error) {
			panic("a bug")
		}}))(http.NotFoundHandler()),
		"RateLimitOptions.Key": good(t)(filters.RateLimit(filters.RateLimitOptions{Requests: 1, Key: func(*http.Request) string {
			panic("a bug")
		}}))(http.NotFoundHandler()),
		"BasicAuthOptions.Check": authorize(good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Check: func(*http.Request, string, string) (bool, error) {
			panic("a bug")
		}}))(http.NotFoundHandler())),
		"before the header": recovers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") })),
		"after the header": recovers(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.WriteString(w, "a part")
			_ = http.NewResponseController(w).Flush()
			panic("a bug")
		})),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				wiretest.Unsent(t, h, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
			})
		})
	}
}
