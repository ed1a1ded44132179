package culvert_test

import (
	"crypto/subtle"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// RequireKey responds with 401 to requests without the API key. All others reach the next handler,
// without the key.
func RequireKey(key string) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Api-Key")), []byte(key)) == 0 {
				http.Error(w, "a valid X-Api-Key is required", http.StatusUnauthorized)
				return
			}
			r = r.Clone(r.Context())
			r.Header.Del("X-Api-Key")
			next.ServeHTTP(w, r)
		})
	}
}

// ServerTiming adds the time to the header of each response to that header.
func ServerTiming() culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			timing := filters.OnResponse(filters.ResponseHooks{
				Header: func(_ *http.Request, status int, h http.Header) {
					ms := float64(time.Since(start).Microseconds()) / 1000
					h.Add("Server-Timing", "gateway;dur="+strconv.FormatFloat(ms, 'f', -1, 64))
				},
			})
			timing(next).ServeHTTP(w, r)
		})
	}
}

func TestServerTiming(t *testing.T) {
	filtertest.Test(t, ServerTiming())
}

// A filter is any func(http.Handler) http.Handler. One that looks at responses is made of OnResponse,
// which preserves flush, hijack, trailers, interim responses and deadlines.
func Example_filter() {
	chain := filters.NewChain(ServerTiming(), RequireKey("secret"))
	http.Handle("/", chain.ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
}
