package upstream_test

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/upstream"
)

// counting responds to checks and counts them. From the tenth on they wait for their end.
type counting struct{ checks atomic.Int32 }

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.checks.Add(1) >= 10 {
		<-r.Context().Done()
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// The longest Interval is a long one, also with what Jitter adds.
func TestLongestInterval(t *testing.T) {
	for _, jitter := range []float64{-1, 1e-20} {
		synctest.Test(t, func(t *testing.T) {
			checks := new(counting)
			newPicks(t, upstream.Options{Transport: checks, Check: &upstream.Check{Path: "/", Interval: math.MaxInt64, Jitter: jitter}}, addrs("a")...)
			time.Sleep(time.Hour)
			if n := checks.checks.Load(); n != 1 {
				t.Errorf("jitter %v: %d checks within an hour", jitter, n)
			}
		})
	}
}

// The largest MaxHeaderBytes is no bound that each response exceeds, on a system of 32 bits either.
func TestLargestMaxHeaderBytes(t *testing.T) {
	target := httptest.NewServer(http.NotFoundHandler())
	defer target.Close()
	transport, err := upstream.NewTransport(upstream.Options{MaxHeaderBytes: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(context.Background(), "GET", target.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := http1.Call{Request: r}
	if err := call.Prepare(); err != nil {
		t.Fatal(err)
	}
	resp, err := http1.PoolOf(transport).Do(&call)
	if err != nil {
		t.Fatal(err)
	}
	defer call.Close()
	if resp.StatusCode != 404 {
		t.Errorf("status %d", resp.StatusCode)
	}
}
