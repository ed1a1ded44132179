package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A failure of the target's side is responded to though the client has stopped in its body: net/http's server waits for
// the rest of that before it sends a header.
func TestFailureBeforeAnUploadThatStopped(t *testing.T) {
	onPaths(t, testFailureBeforeAnUploadThatStopped)
}
func testFailureBeforeAnUploadThatStopped(t *testing.T, via path) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("sorry ", 1000)) })
	pages := filters.ErrorPages(func(int) http.Handler { return page })
	for name, test := range map[string]struct {
		around []culvert.Filter
		target upstream.Target
		status string
	}{
		"not dialled":                    {nil, upstream.Target{}, "502 "},
		"not dialled, behind ErrorPages": {[]culvert.Filter{pages}, upstream.Target{}, "502 "},
		"no target":                      {nil, upstream.Target{Down: true}, "503 "},
		"no target, behind ErrorPages":   {[]culvert.Filter{pages}, upstream.Target{Down: true}, "503 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.target.Addr = "192.0.2.1:80"
				o := proxy.Options{Upstream: groupOf(t, upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
				}}, test.target)}
				p := newProxy(t, via, o)
				client := dialInMemory(t, filters.NewChain(test.around...).Then(p), p, o.Upstream.(*upstream.Group))
				start := time.Now()
				client.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
				if head := client.Header(); !strings.HasPrefix(head, "HTTP/1.1 "+test.status) || time.Since(start) > 5*time.Second {
					t.Errorf("after %v: %q", time.Since(start), head)
				}
			})
		})
	}
}
