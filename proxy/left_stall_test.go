package proxy_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target that does not accept the kept part of a body is to blame for that, also where a read which the attempt before has left
// still awaits the client. An embedder's transport may pause as it likes.
func TestTargetStallsBehindALeftUpload(t *testing.T) {
	t.Parallel()
	const sent = 3 << 19 // more than the window of a stream
	target := func(h http.HandlerFunc) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog, s.EnableHTTP2 = wiretest.Quiet(), true
		wiretest.StartTLS(s)
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	drops := target(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.CopyN(io.Discard, r.Body, sent); err != nil {
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // or net/http would reset the stream
	})
	stalls := target(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	u := groupAt(t, upstream.Options{Balance: upstream.First(), Scheme: "https", Protocol: upstream.HTTP2, WriteTimeout: 200 * time.Millisecond,
		TLSConfig: &tls.Config{InsecureSkipVerify: true}}, drops, stalls)
	var failed failures
	client := wiretest.Dial(t, wiretest.Serve(t, newProxy(t, ownExchange, proxy.Options{Upstream: u, OnError: failed.add,
		Retry: proxy.Retry{Statuses: []int{503}, NonIdempotent: true, KeepBody: 2 * sent}})))
	client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("a", sent))
	client.Status(http.StatusGatewayTimeout)
	if e := failed.only(t); e.Kind != culvert.Timeout {
		t.Errorf("failure %v, want a target's", e)
	}
}
