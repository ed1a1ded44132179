package filtertest_test

import (
	"bytes"
	"fmt"
	"io"
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

// A filter that reads the body before its handler runs gives up requests and responses that overlap, and trailers of
// requests. The other checks still hold.
func ExampleExcept() {
	readAhead := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "the body could not be read", http.StatusBadRequest)
				return
			}
			r = r.Clone(r.Context())
			r.Body, r.Trailer = io.NopCloser(bytes.NewReader(body)), nil
			next.ServeHTTP(w, r)
		})
	}
	failures := filtertest.Check(readAhead, filtertest.Except("full duplex", "deadlines", "request trailers"))
	fmt.Println(len(failures), "failures")
	// Output: 0 failures
}
