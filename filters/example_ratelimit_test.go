package filters_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// Each user may make two requests a minute, and requests without a user are limited by their address.
func ExampleRateLimit() {
	limit, err := filters.RateLimit(filters.RateLimitOptions{
		Requests: 2,
		Per:      time.Minute,
		Policy:   "user",
		Key: func(r *http.Request) string {
			if user := r.Header.Get("X-User"); user != "" { // set by a filter that has authenticated the user
				return "user " + user
			}
			return "address " + filters.ClientAddr(r).String()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit(http.NotFoundHandler())
	for range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-User", "gopher")
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 404 "user";r=1;t=30
	// 404 "user";r=0;t=30
	// 429 "user";r=0;t=30
}
