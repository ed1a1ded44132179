package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// lateContext is the context of a request whose RoundTrip is late to wait, as on a busy machine: net/http's transport for HTTP/2 has
// begun the stream, and has not looked at what has become of it.
type lateContext struct {
	context.Context
	late *atomic.Bool
}

// Done is called where RoundTrip begins to wait.
func (c lateContext) Done() <-chan struct{} {
	if caller, _, _, ok := runtime.Caller(1); ok && strings.HasSuffix(runtime.FuncForPC(caller).Name(), ".(*http2ClientConn).roundTrip") && !c.late.Swap(true) {
		time.Sleep(10 * time.Millisecond)
	}
	return c.Context.Done()
}

// A target's refusal of an upload is known for what it is, though the upload's read of the client's body has to be left, and so is retried.
func TestRefusedUploadOfALateRoundTrip(t *testing.T) {
	for n := range 10 { // which of two reasons a select takes that has both is random
		t.Run(strconv.Itoa(n), testRefusedUploadOfALateRoundTrip)
	}
}

func testRefusedUploadOfALateRoundTrip(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		first, second := newScriptedConn(), newScriptedConn()
		first.held = 1
		var conns []net.Conn
		transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			serve := second.serve
			if addr == "192.0.2.1:80" {
				serve = first.serve
			}
			conn, err := pipeTo(serve)(ctx, network, addr)
			conns = append(conns, conn)
			return conn, err
		}}
		transport.Protocols.SetUnencryptedHTTP2(true)
		var late atomic.Bool
		o := proxy.Options{Upstream: groupAt(t, upstream.Options{Protocol: upstream.H2C, Balance: upstream.First()}, "192.0.2.1:80", "192.0.2.2:80"), Retry: proxy.Retry{Errors: true}}
		o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			return transport.RoundTrip(r.WithContext(lateContext{r.Context(), &late}))
		})
		p := newProxy(t, anyPath, o)
		body, send := io.Pipe()
		go func() {
			_, _ = io.WriteString(send, "hello")
			synctest.Wait()
			first.writes <- func(f *http2.Framer) error { return f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }
			time.Sleep(time.Second)
			_ = send.Close()
		}()
		ctx, record := filters.WithResult(t.Context())
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "http://gateway.test/", body))
		if w.Code != http.StatusOK || len(record.Attempts) != 2 || !late.Load() {
			t.Errorf("status %d, late %v, attempts %+v", w.Code, late.Load(), record.Attempts)
		}
		for _, conn := range conns {
			conn.Close()
		}
		_ = o.Upstream.(*upstream.Group).Close()
		time.Sleep(time.Minute)
	})
}
