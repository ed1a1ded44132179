package watchcodec_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
)

// TestResumedWatchThatHoldsTheLastPlace: the list that a resumed watch needs is requested while the
// watch holds its place. It must not wait for one, which may be the watch's own: both would stand
// still until the wait times out. Instead the client receives a 410 and the watch ends, which frees
// the place. If a place is free, the list takes it.
func TestResumedWatchThatHoldsTheLastPlace(t *testing.T) {
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + item("had", "yes") + `]}`
	for name, test := range map[string]struct {
		group  upstream.Options // with MaxConns of its target
		conns  int
		places int // of filters.Concurrency, 0 for none
		want   string
	}{
		"MaxConns 1":              {upstream.Options{Queue: 5, QueueTimeout: time.Hour}, 1, 0, `"code":410`},
		"MaxConns 1, no queue":    {upstream.Options{}, 1, 0, `"code":410`},
		"MaxConns 2":              {upstream.Options{Queue: 5, QueueTimeout: time.Hour}, 2, 0, gone("had", "8")},
		"Concurrency of 1":        {upstream.Options{}, 0, 1, `"code":410`},
		"Concurrency of 2":        {upstream.Options{}, 0, 2, gone("had", "8")},
		"MaxConns 1, MaxInFlight": {upstream.Options{Queue: 5, QueueTimeout: time.Hour, MaxInFlight: 1}, 1, 0, `"code":410`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if !r.URL.Query().Has("watch") {
						_, _ = io.WriteString(w, list)
						return
					}
					_, _ = io.WriteString(w, pod("MODIFIED", "had", "no", "8"))
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				})
				var servers sync.WaitGroup
				test.group.DialContext = func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					s := wiretest.Server(&http.Server{Handler: target})
					servers.Go(func() { _ = s.Serve(wiretest.OneConn(far)) })
					return near, nil
				}
				group, err := upstream.New(test.group, upstream.Target{Addr: "192.0.2.1:80", MaxConns: test.conns})
				if err != nil {
					t.Fatal(err)
				}
				p, err := proxy.New(proxy.Options{Upstream: group})
				if err != nil {
					t.Fatal(err)
				}
				filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seen }})
				if err != nil {
					t.Fatal(err)
				}
				chain := []culvert.Filter{filter}
				if test.places > 0 {
					bound, err := filters.Concurrency(filters.ConcurrencyOptions{Max: test.places, Queue: 5, QueueTimeout: time.Hour})
					if err != nil {
						t.Fatal(err)
					}
					chain = append(chain, bound)
				}
				h := filters.NewChain(chain...).Then(p)
				ctx, cancel := context.WithCancel(t.Context())
				w := &firstWrite{ResponseRecorder: httptest.NewRecorder(), first: make(chan string, 1)}
				ended := make(chan struct{})
				begun := time.Now()
				go func() {
					defer close(ended)
					defer func() { _ = recover() }() // the filter aborts a response that it can't end otherwise
					h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=7", nil))
				}()
				if got := <-w.first; !strings.Contains(got, test.want) || time.Since(begun) > 0 {
					t.Errorf("after %v the client receives %q, want %q", time.Since(begun), got, test.want)
				}
				cancel()
				<-ended
				_ = group.Close()
				servers.Wait()
			})
		})
	}
}

// firstWrite is a client that reports the first write.
type firstWrite struct {
	*httptest.ResponseRecorder
	first chan string
}

func (w *firstWrite) Write(p []byte) (int, error) {
	select {
	case w.first <- string(p):
	default:
	}
	return len(p), nil
}
