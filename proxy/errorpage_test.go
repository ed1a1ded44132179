package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A client that accepts nothing of an ErrorHandler's page holds neither handler nor connection, however long the page is.
func TestErrorPageThatIsNotAccepted(t *testing.T) { onPaths(t, testErrorPageThatIsNotAccepted) }
func testErrorPageThatIsNotAccepted(t *testing.T, via path) {
	for name, size := range map[string]int{"short": 10, "long": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProxy(t, via, proxy.Options{
					Upstream: groupOf(t, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", Down: true}),
					ErrorHandler: func(w http.ResponseWriter, _ *http.Request, e *culvert.Error) {
						w.WriteHeader(e.Status())
						_, _ = io.WriteString(w, strings.Repeat("x", size))
					},
				})
				wiretest.NotAccepted(t, p, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			})
		})
	}
}

// An error page for a request whose time is over is sent after that time, however long the page is. An ErrorHandler that
// writes nothing leaves no deadline for the outer handler.
func TestErrorPageBehindTheTime(t *testing.T) { onPaths(t, testErrorPageBehindTheTime) }
func testErrorPageBehindTheTime(t *testing.T, via path) {
	for name, test := range map[string]struct {
		size int
		sets bool
	}{"short": {10, true}, "long": {100 << 10, true}, "none": {0, false}} {
		for major := 1; major <= 2; major++ {
			synctest.Test(t, func(t *testing.T) {
				p := newProxy(t, via, proxy.Options{
					Upstream: groupOf(t, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", Down: true}),
					ErrorHandler: func(w http.ResponseWriter, _ *http.Request, e *culvert.Error) {
						if test.size > 0 {
							w.WriteHeader(e.Status())
							_, _ = io.WriteString(w, strings.Repeat("x", test.size))
						}
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				<-ctx.Done()
				w := &expiring{ResponseRecorder: httptest.NewRecorder()}
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
				r.ProtoMajor = major
				p.ServeHTTP(w, r)
				time.Sleep(time.Second)
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.Body.Len() != test.size || w.until.IsZero() == test.sets || w.past() {
					t.Errorf("%s, HTTP/%d: %d bytes, deadline %v at %v", name, major, w.Body.Len(), w.until, time.Now())
				}
			})
		}
	}
}

// expiring accepts nothing behind its deadline, and is slow.
type expiring struct {
	*httptest.ResponseRecorder
	mu    sync.Mutex
	until time.Time
}

func (w *expiring) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = t
	return nil
}

func (w *expiring) Write(p []byte) (int, error) {
	time.Sleep(time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.past() {
		return 0, os.ErrDeadlineExceeded
	}
	return w.ResponseRecorder.Write(p)
}

func (w *expiring) past() bool { return !w.until.IsZero() && !time.Now().Before(w.until) }
