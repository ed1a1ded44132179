package filtertest_test

import (
	"fmt"
	"net/http"

	"github.com/culvert-go/culvert/filters/filtertest"
)

// A filter that rewrites the query of each request is not what a target behind a gateway expects. In a test of your own,
// filtertest.Test fails it.
func ExampleCheck() {
	sortQuery := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = r.URL.Query().Encode()
			next.ServeHTTP(w, r)
		})
	}
	for _, failure := range filtertest.Check(sortQuery) {
		fmt.Println("failed:", failure.Check)
	}
	// Output: failed: request
}
