package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// pacedBody is a transform that takes its time: as long as wait before it writes, or before it writes what it has held at the end.
type pacedBody struct {
	w    io.Writer
	wait time.Duration
	held bool
	kept []byte
}

func (b *pacedBody) Write(p []byte) (int, error) {
	if b.held {
		b.kept = append(b.kept, p...)
		return len(p), nil
	}
	time.Sleep(b.wait)
	return b.w.Write(p)
}

func (b *pacedBody) Close() error {
	if !b.held {
		return nil
	}
	time.Sleep(b.wait)
	for len(b.kept) > 0 {
		n, err := b.w.Write(b.kept[:min(len(b.kept), 64<<10)])
		if b.kept = b.kept[n:]; err != nil {
			return err
		}
	}
	return nil
}

func paced(wait time.Duration, held bool) culvert.Filter {
	return filters.OnResponse(filters.ResponseHooks{Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
		h.Del("Content-Length")
		return &pacedBody{w: w, wait: wait, held: held}
	}})
}

// TestTimeOfATransform: what filters do with a response's content, and wait for, is not the time that the client has for a write. A
// client that accepts nothing of what they write is given up.
func TestTimeOfATransform(t *testing.T) { onPaths(t, testTimeOfATransform) }
func testTimeOfATransform(t *testing.T, via path) {
	const bound = 4 * time.Second
	testCertificate()
	at := paced(0, false)
	for name, chain := range map[string]culvert.Filter{
		"in a write":                    paced(10*time.Second, false),
		"in a write, below another":     filters.NewChain(at, paced(10*time.Second, false)).Then,
		"in a write, around another":    filters.NewChain(paced(10*time.Second, false), at).Then,
		"at the end":                    paced(10*time.Second, true),
		"at the end, below another":     filters.NewChain(at, paced(10*time.Second, true)).Then,
		"at the end, around all others": filters.NewChain(filters.OnResponse(filters.ResponseHooks{}), paced(10*time.Second, true), at).Then,
	} {
		for _, flush := range []time.Duration{0, -1, 20 * time.Millisecond} {
			for _, front := range fronts {
				for _, reads := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, %v, %s, reads %v", name, flush, front, reads), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { testTransform(t, via, chain, bound, flush, front, reads) })
					})
				}
			}
		}
	}
}

func testTransform(t *testing.T, via path, chain culvert.Filter, bound, flush time.Duration, front string, reads bool) {
	t.Cleanup(func() { time.Sleep(time.Hour) }) // net/http's server lingers
	length := 100
	if !reads { // more than what net/http's client has windows and buffers for
		length = 1 << 20
	}
	group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: pipeTo(func(c net.Conn) {
		if _, err := c.Read(make([]byte, 4<<10)); err == nil {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length)
			_, _ = io.CopyN(c, zeros{}, int64(length))
		}
	})}, "192.0.2.1:80")
	var failed failures
	p := newProxy(t, via, proxy.Options{Upstream: group, WriteTimeout: bound, FlushInterval: flush, OnError: failed.add})
	ended := make(chan struct{})
	client, url := frontInBubble(t, front, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		chain(p).ServeHTTP(w, r)
	}))
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if reads {
		if got, err := io.ReadAll(resp.Body); len(got) != length || err != nil {
			t.Errorf("the client got %d bytes, %v; failures %v", len(got), err, failed.all)
		}
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Hour):
		t.Error("the handler is held")
	}
	if reads && len(failed.all) > 0 {
		t.Errorf("failures %v", failed.all)
	}
	if n, err := io.Copy(io.Discard, resp.Body); !reads && err == nil {
		t.Errorf("a client that was not given up: it has %d bytes, behind the handler", n)
	}
	resp.Body.Close()
}
