package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// panickedWith serves a GET, and returns what the handler has panicked with.
func panickedWith(h http.Handler) (v any) {
	defer func() { v = recover() }()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://gateway.test/", nil))
	return nil
}

// TestTimeOfAResponseOverAStuckConnection: a response over HTTP/2 that comes to a halt is broken off when its time is over, also
// while its target reads nothing of the connection, so that no RST_STREAM can reach it.
func TestTimeOfAResponseOverAStuckConnection(t *testing.T) {
	onPaths(t, testTimeOfAResponseOverAStuckConnection)
}
func testTimeOfAResponseOverAStuckConnection(t *testing.T, via path) {
	for name, o := range map[string]proxy.Options{"BodyTimeout": {BodyTimeout: 5 * time.Second}, "Timeout": {Timeout: 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				target := newScriptedConn()
				target.held, target.last, target.resume = 3, 3, make(chan struct{})
				group := groupOf(t, upstream.Options{Protocol: upstream.H2C, DialContext: pipeTo(target.serve), WriteTimeout: -1, PingInterval: -1},
					upstream.Target{Addr: "192.0.2.1:80"})
				var failed atomic.Pointer[culvert.Error]
				o.Upstream = group
				o.OnError = func(_ *http.Request, e *culvert.Error) { failed.Store(e) }
				p := newProxy(t, via, o)
				if v := panickedWith(p); v != nil { // the connection is there
					t.Fatal(v)
				}
				synctest.Wait() // http.Transport gives a request its connection before it keeps it: the next one would dial
				ended := make(chan any, 1)
				go func() { ended <- panickedWith(p) }()
				synctest.Wait()
				target.writes <- func(f *http2.Framer) error {
					return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: headerBlock(":status: 200\ncontent-length: 10\n"), EndHeaders: true})
				}
				target.writes <- func(f *http2.Framer) error { return f.WriteData(3, false, []byte("part")) }
				select {
				case v := <-ended:
					if e := failed.Load(); v != http.ErrAbortHandler || e == nil || e.Kind != culvert.Timeout || !e.HeaderSent {
						t.Errorf("a panic with %v, failure %v", v, e)
					}
				case <-time.After(time.Minute):
					t.Error("the response is not broken off")
				}
				close(target.resume)
				synctest.Wait()
				_ = group.Close()
			})
		})
	}
}
