package proxy_test

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
)

// A target that opens the window of a stream too far fails that exchange. Later ones are served over another connection, and the target
// is released each time.
func TestHTTP2WindowOverflow(t *testing.T) { onPaths(t, testHTTP2WindowOverflow) }
func testHTTP2WindowOverflow(t *testing.T, via path) {
	for _, over := range http2Overs {
		t.Run(over.name, func(t *testing.T) {
			leaktest.Check(t)
			var requests atomic.Int32
			target := over.script(t, func(f *http2.Framer, stream uint32) error {
				if requests.Add(1) == 1 {
					_ = f.WriteWindowUpdate(stream, 1<<31-1)
					return f.WriteWindowUpdate(stream, 1<<31-1)
				}
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
			})
			var failed failures
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, over.options, target), OnError: failed.add})
			client := receivers[0]
			address := client.serve(t, p)
			for i, want := range []int{http.StatusBadGateway, http.StatusOK, http.StatusOK} {
				if got := client.receive(t, address, "POST"); !slices.Equal(got.statuses, []int{want}) || !got.whole {
					t.Errorf("request %d: got %v, want %d", i, got, want)
				}
			}
			if e := failed.only(t); e.Kind != culvert.HeaderInvalid || e.Target != target || e.ClientSide() {
				t.Errorf("failure %v, %#v", e, e)
			}
		})
	}
}
