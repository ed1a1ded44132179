package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// Each piece of a body has the group's WriteTimeout, the last one, too: however its end is read, it is bounded until the
// target of HTTP/2 has opened a window for it. From then on the target may think about the request.
func TestLastPieceOfAnUpload(t *testing.T) {
	for name, put := range map[string]func(content string) *http.Request{
		"the end beside it": func(content string) *http.Request {
			r := put(iotest.DataErrReader(strings.NewReader(content)))
			r.ContentLength = int64(len(content))
			return r
		},
		"the end behind it": func(content string) *http.Request { return put(strings.NewReader(content)) },
		"no length":         func(content string) *http.Request { return put(io.MultiReader(strings.NewReader(content))) },
	} {
		for target, test := range map[string]struct {
			size   int
			want   int
			within time.Duration
		}{
			"thinks":          {window, http.StatusOK, time.Minute},
			"opens no window": {window + 1, http.StatusGatewayTimeout, 2 * time.Second},
		} {
			t.Run(name+", a target that "+target, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					group := groupAt(t, upstream.Options{Protocol: upstream.H2C, WriteTimeout: time.Second, HeaderTimeout: -1, DialContext: pipeTo(func(c net.Conn) {
						thinkingTarget(c, 10*time.Second)
					})}, "192.0.2.1:80")
					p := newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: group.Transport(), Timeout: time.Minute})
					w, begun := httptest.NewRecorder(), time.Now()
					p.ServeHTTP(w, put(strings.Repeat("x", test.size)))
					if took := time.Since(begun); w.Code != test.want || took > test.within {
						t.Errorf("status %d behind %v, want %d", w.Code, took, test.want)
					}
					_ = group.Close()
					time.Sleep(time.Minute) // the target ends
				})
			})
		}
	}
}

// window is how much of a body a target of HTTP/2 takes that has opened no window (RFC 9113 section 6.9.2).
const window = 64<<10 - 1

func put(content io.Reader) *http.Request { return httptest.NewRequest(http.MethodPut, "/", content) }

// thinkingTarget is a target of HTTP/2 on c that opens no window, and responds a while behind the end of a request.
func thinkingTarget(c net.Conn, while time.Duration) {
	out := make(ahead, 100)
	defer close(out)
	go out.writeTo(c)
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(out, c)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			_ = framer.WritePing(true, f.Data)
		case *http2.DataFrame:
			if f.StreamEnded() {
				time.Sleep(while)
				_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: headerBlock(":status: 200\n"), EndStream: true, EndHeaders: true})
			}
		}
	}
}

// ahead holds what is written to a pipe, which has no room: two ends that write at once would wait for each other.
type ahead chan []byte

func (a ahead) Write(p []byte) (int, error) {
	a <- append([]byte(nil), p...)
	return len(p), nil
}

func (a ahead) writeTo(c net.Conn) {
	for p := range a {
		_, _ = c.Write(p)
	}
}
