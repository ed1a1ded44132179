// Package compose shows filters of other libraries in a chain with culvert's own: CORS, which culvert leaves to them, and
// limits by a sliding window, where filters.RateLimit has token buckets.
package compose

import (
	"net/http"
	"time"

	"github.com/go-chi/httprate"
	"github.com/rs/cors"

	"github.com/culvert-go/culvert/filters"
)

// Chain allows requests of origin's pages from browsers, perMinute for each client. Clients are
// distinguished by filters.ClientAddr: put filters.RealIP before it if there are trusted proxies
// in front.
func Chain(origin string, perMinute int) filters.Chain {
	byClient := func(r *http.Request) (string, error) { return filters.ClientAddr(r).String(), nil }
	return filters.NewChain(
		cors.New(cors.Options{AllowedOrigins: []string{origin}, AllowedMethods: []string{"GET", "POST"}, AllowCredentials: true}).Handler,
		httprate.LimitBy(perMinute, time.Minute, byClient),
	)
}
