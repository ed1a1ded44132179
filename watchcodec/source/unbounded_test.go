package source_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/watchcodec/source"
)

// TestLongestRetryAfter: a Retry-After that is longer than any time.Duration does not count as none.
func TestLongestRetryAfter(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"20":                   20 * time.Second,
		"-1":                   0,
		"":                     0,
		"9223372036":           9223372036 * time.Second,
		"9223372037":           9223372036 * time.Second,
		"9223372036854775807":  9223372036 * time.Second,
		"99999999999999999999": 9223372036 * time.Second,
	} {
		refused := &source.RefusedError{Header: http.Header{"Retry-After": {field}}}
		if got := source.RetryAfter(refused); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

// TestShortestMaxWait: the shortest MaxWait is none between attempts.
func TestShortestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := 0
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if attempts++; attempts == 5 {
				cancel()
			}
			w.WriteHeader(http.StatusBadGateway)
		})
		s, err := source.New(source.Options{Handler: h, Request: httptest.NewRequest("GET", "/api/v1/things", nil), Sink: newRecord(), MaxWait: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}
