// Package compose shows what is not in culvert and need not be: CORS and rate limits
// of well-kept libraries, in a chain with culvert's own filters.
package compose

import (
	"net/http"
	"time"

	"github.com/go-chi/httprate"
	"github.com/rs/cors"

	"github.com/culvert-go/culvert/filters"
)

// Chain lets pages of origin ask from browsers, each client perMinute times a
// minute. Clients are told apart by filters.ClientAddr: put filters.RealIP before
// it where trusted proxies are in front.
func Chain(origin string, perMinute int) filters.Chain {
	byClient := func(r *http.Request) (string, error) { return filters.ClientAddr(r).String(), nil }
	return filters.NewChain(
		cors.New(cors.Options{AllowedOrigins: []string{origin}, AllowedMethods: []string{"GET", "POST"}, AllowCredentials: true}).Handler,
		httprate.LimitBy(perMinute, time.Minute, byClient),
	)
}
