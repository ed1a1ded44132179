package proxy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A request is retried after a target's timeout exactly if the policy names timeouts: an error is another thing.
func TestRetryAfterATimeout(t *testing.T) { onPaths(t, testRetryAfterATimeout) }
func testRetryAfterATimeout(t *testing.T, via path) {
	for name, test := range map[string]struct {
		retry proxy.Retry
		want  int
		dials string
	}{
		"timeouts":    {proxy.Retry{Errors: true, Timeouts: true}, 200, "192.0.2.1:80 192.0.2.2:80 "},
		"errors only": {proxy.Retry{Errors: true}, 504, "192.0.2.1:80 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(time.Hour) }) // all of them end
				stalls := pipeTo(func(c net.Conn) { wiretest.NewPeer(t, c).Ended() })
				responds := pipeTo(func(c net.Conn) {
					p := wiretest.NewPeer(t, c)
					p.Header()
					p.Send(ok)
				})
				dials := ""
				group := groupAt(t, upstream.Options{Balance: upstream.First(), HeaderTimeout: time.Second, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials += addr + " "; addr == "192.0.2.1:80" {
						return stalls(ctx, network, addr)
					}
					return responds(ctx, network, addr)
				}}, "192.0.2.1:80", "192.0.2.2:80")
				p := newProxy(t, via, proxy.Options{Upstream: group, Retry: test.retry})
				w, start := httptest.NewRecorder(), time.Now()
				p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/x", nil))
				if took := time.Since(start); w.Code != test.want || dials != test.dials || took < time.Second || took > 2*time.Second {
					t.Errorf("status %d after %v, dialled %q, want %d, %q", w.Code, took, dials, test.want, test.dials)
				}
			})
		})
	}
}

// recordingTransport is a Transport that records the target of each request, and fails for those that
// are broken.
type recordingTransport struct {
	order  []string
	broken map[string]bool
	took   time.Duration
	status map[string]int // in the place of 204
}

func (a *recordingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _, _ := strings.Cut(r.URL.Host, ":")
	a.order = append(a.order, host)
	time.Sleep(a.took)
	if a.broken[host] {
		return nil, errors.New("broken")
	}
	return &http.Response{StatusCode: cmp.Or(a.status[host], 204), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (a *recordingTransport) get(p http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w
}

// There is no retry after RetryTimeout.
func TestRetryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &recordingTransport{broken: map[string]bool{"a": true, "b": true, "c": true}, took: 2 * time.Second}
		p := newProxy(t, anyPath, proxy.Options{Transport: a, Retry: proxy.Retry{Errors: true, Timeout: 3 * time.Second},
			Upstream: groupAt(t, upstream.Options{Balance: upstream.First()}, "a:1", "b:1", "c:1")})
		if w := a.get(p); w.Code != 502 || fmt.Sprint(a.order) != "[a b]" {
			t.Errorf("status %d after %v", w.Code, a.order)
		}
	})
}
