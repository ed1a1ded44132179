package proxy_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/proxy"
)

// net/http's transport has the response to a HEAD over HTTP/2 when its stream has ended, and a target may let it wait for that
// behind the header: no longer than for the header.
func TestHeadWhoseStreamDoesNotEnd(t *testing.T) { onPathsParallel(t, testHeadWhoseStreamDoesNotEnd) }
func testHeadWhoseStreamDoesNotEnd(t *testing.T, via path) {
	const never, atOnce, behind = "never", "at once", "a frame later"
	for _, test := range []struct {
		end    string
		bound  time.Duration
		status int
	}{
		{never, soon, http.StatusGatewayTimeout},
		{atOnce, time.Minute, http.StatusOK},
		{behind, time.Minute, http.StatusOK},
		{behind, -1, http.StatusOK},
	} {
		for _, over := range http2Overs {
			t.Run(over.name+" "+test.end+" "+test.bound.String(), func(t *testing.T) {
				addr := over.script(t, func(f *http2.Framer, stream uint32) error {
					header := http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndStream: test.end == atOnce, EndHeaders: true}
					if err := f.WriteHeaders(header); err != nil || test.end != behind {
						return err
					}
					return f.WriteData(stream, true, nil)
				})
				o := over.options
				o.HeaderTimeout = test.bound
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, o, addr)})
				for range 2 { // over a fresh connection, and a kept one perhaps
					status, record := recorded(t, p, "HEAD", "")
					if status != test.status {
						t.Errorf("status %d, want %d: %v", status, test.status, record.Err)
					}
					var e *culvert.Error
					if status == http.StatusGatewayTimeout && (!errors.As(record.Err, &e) || e.Kind != culvert.Timeout || e.Target != addr) {
						t.Errorf("the failure is %v, want a timeout of the target", record.Err)
					}
				}
			})
		}
	}
}
