package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target of HTTP/2 that opens no window for an upload, and responds to pings, holds it for the group's WriteTimeout: 504.
// One that has responded may leave the upload alone.
func TestClosedWindow(t *testing.T) {
	t.Parallel()
	const bound = 100 * time.Millisecond
	responds := func(f *http2.Framer, stream uint32) error {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(":status: 200\n"), EndHeaders: true})
		time.Sleep(3 * bound) // a shorter one would only hide a fault
		return errors.Join(err, f.WriteData(stream, true, []byte("page")))
	}
	for name, test := range map[string]struct {
		script func(*http2.Framer, uint32) error
		want   int
	}{
		"no response": {func(*http2.Framer, uint32) error { return nil }, http.StatusGatewayTimeout},
		"a response":  {responds, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := groupAt(t, upstream.Options{Protocol: upstream.H2C, WriteTimeout: bound, HeaderTimeout: -1}, http2Script(t, test.script))
			addr := wiretest.Serve(t, newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: group.Transport()}))
			client := wiretest.Dial(t, addr)
			client.Send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("8000\r\n"+strings.Repeat("x", 0x8000)+"\r\n", 4))
			resp, err := http.ReadResponse(client.R, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != test.want {
				t.Errorf("status %d, want %d", resp.StatusCode, test.want)
			}
			if content, err := io.ReadAll(resp.Body); err != nil || test.want == http.StatusOK && string(content) != "page" {
				t.Errorf("content %q, %v", content, err)
			}
		})
	}
}
