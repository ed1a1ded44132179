package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// lateWriter is a response's writer whose client takes its time to accept an interim response.
type lateWriter struct {
	*httptest.ResponseRecorder
	takes time.Duration
	bug   any  // what it panics with then; nil: nothing
	final *int // status
}

func (w lateWriter) WriteHeader(status int) {
	if status != http.StatusEarlyHints {
		*w.final = status
		w.ResponseRecorder.WriteHeader(status)
		return
	}
	time.Sleep(w.takes)
	if w.bug != nil {
		panic(w.bug)
	}
}

// serveLate has p respond to a client that takes so long for each interim response. It returns the status of the final response, 0 for
// none, and what p has panicked with.
func serveLate(p *proxy.Proxy, takes time.Duration, bug any) (status int, panicked any) {
	defer func() { panicked = recover() }()
	p.ServeHTTP(lateWriter{httptest.NewRecorder(), takes, bug, &status}, httptest.NewRequest(http.MethodGet, "http://culvert.test/", nil))
	return status, nil
}

// hintAnd responds to a request at once, with interim responses and the beginning of a final one.
func hintAnd(final string, hints int) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := c.Read(make([]byte, 4<<10)); err != nil {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, c) }()
		_, _ = io.WriteString(c, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", hints)+final)
		time.Sleep(time.Minute)
	}
}

// TestTimeOverAtAnInterimResponse: where the time of a request ends while its client accepts interim responses, no response is
// begun whose body is cut, and the target, which has responded at once, is not to blame. A response without a body is
// relayed.
func TestTimeOverAtAnInterimResponse(t *testing.T) { onPaths(t, testTimeOverAtAnInterimResponse) }
func testTimeOverAtAnInterimResponse(t *testing.T, via path) {
	for name, test := range map[string]struct {
		hints int
		takes time.Duration
		final string
		whole int // its status, if it is relayed
	}{
		"one":            {1, 10 * time.Second, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0},
		"three":          {3, 3 * time.Second, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0},
		"without a body": {3, 3 * time.Second, "HTTP/1.1 204 No Content\r\n\r\n", http.StatusNoContent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := groupOf(t, upstream.Options{DialContext: pipeTo(hintAnd(test.final, test.hints))}, upstream.Target{Addr: "192.0.2.1:80", FailTimeout: time.Hour})
				p := newProxy(t, via, proxy.Options{Upstream: group, Timeout: 5 * time.Second})
				if status, _ := serveLate(p, test.takes, nil); status != test.whole && status != http.StatusGatewayTimeout {
					t.Errorf("a response %d is begun", status)
				}
				for target := range group.Targets() {
					if target.Fails > 0 || !target.Healthy {
						t.Errorf("%d failures are counted against the target", target.Fails)
					}
				}
				_ = group.Close()
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// TestPanicAtAnInterimResponseOfADroppedOne: where a filter's writer panics at an interim response before one that is dropped for
// another target's, that target is given back, too.
func TestPanicAtAnInterimResponseOfADroppedOne(t *testing.T) {
	onPaths(t, testPanicAtAnInterimResponseOfADroppedOne)
}
func testPanicAtAnInterimResponseOfADroppedOne(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		busy := hintAnd("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 1)
		group := groupOf(t, upstream.Options{DialContext: pipeTo(busy)}, upstream.Target{Addr: "192.0.2.1:80"}, upstream.Target{Addr: "192.0.2.2:80"})
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Statuses: []int{http.StatusServiceUnavailable}}})
		if status, v := serveLate(p, time.Second, "bug"); status != 0 || v != "bug" {
			t.Errorf("status %d, panic %v", status, v)
		}
		if n := group.InFlight(); n != 0 {
			t.Errorf("%d targets are still leased", n)
		}
		_ = group.Close()
		time.Sleep(2 * time.Minute)
	})
}
