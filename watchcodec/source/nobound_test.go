package source_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// run runs a Source with o for a while, and returns its requests and its error.
func run(t *testing.T, o source.Options, steps map[string][]http.HandlerFunc, d time.Duration) (requested []string, err error) {
	t.Helper()
	leaktest.Check(t)
	s := &script{steps: steps}
	o.Handler, o.Request, o.Sink = s, httptest.NewRequest("GET", "/api/v1/things", nil), newRecord()
	src, err := source.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	err = src.Run(ctx)
	return s.requested, err
}

// With negative times a Source waits a month for the first initial event and keeps a watch for a month, and the
// time between two attempts doubles without end.
func TestNegativeTimesAreNoBound(t *testing.T) {
	const month = 30 * 24 * time.Hour
	o := source.Options{InitialTimeout: -1, MaxWait: -1, MaxWatch: -1}
	for name, test := range map[string]struct {
		steps map[string][]http.HandlerFunc
		most  int // requests
	}{
		"no initial event": {map[string][]http.HandlerFunc{"watchlist": {events()}}, 1},
		"a quiet watch":    {map[string][]http.HandlerFunc{"watchlist": {events(end)}}, 1},
		"out of reach":     {map[string][]http.HandlerFunc{"watchlist": {text(http.StatusBadGateway, "", "")}}, 28}, // 100 ms * 2^25 is 38 days, and half of each wait may be left out
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if requested, err := run(t, o, test.steps, month); !errors.Is(err, context.DeadlineExceeded) || len(requested) > test.most {
					t.Errorf("%d requests, %v", len(requested), err)
				}
			})
		})
	}
}
