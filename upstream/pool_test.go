package upstream_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/upstream"
)

// Package proxy gets the connections of a Transport itself whose targets speak HTTP/1.1, and of no other one.
func TestPoolOf(t *testing.T) {
	transport := func(o upstream.Options) *upstream.Transport {
		made, err := upstream.NewTransport(o)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	http11 := transport(upstream.Options{})
	for name, test := range map[string]struct {
		of     http.RoundTripper
		pooled bool
	}{
		"HTTP/1.1":       {http11, true},
		"HTTP/1.1, TLS":  {transport(upstream.Options{Scheme: "https"}), true},
		"h2":             {transport(upstream.Options{Scheme: "https", Protocol: upstream.HTTP2}), false},
		"h2c":            {transport(upstream.Options{Protocol: upstream.H2C}), false},
		"a wrapped one":  {struct{ http.RoundTripper }{http11}, false},
		"net/http's own": {http.DefaultTransport, false},
		"none":           {nil, false},
	} {
		if pool := http1.PoolOf(test.of); (pool != nil) != test.pooled {
			t.Errorf("%s: %v", name, pool)
		}
	}
}
