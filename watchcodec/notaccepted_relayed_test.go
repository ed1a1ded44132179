package watchcodec_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// If a client stops accepting a relayed response that a filter rewrites, the response is given up,
// and the failure is the client's.
func TestRelayedResponseThatIsNotAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		filter  func(http.Handler) http.Handler
		path    string
		media   string
		content string // again and again
	}{
		"a watch": {showing(true), "/api/v1/pods?watch=1", "application/json", pod("ADDED", "a", "yes", "7")},
		"a list": {showing(true), "/api/v1/pods", "application/json",
			`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Repeat(item("a", "yes")+",", 100_000) + item("a", "yes") + "]}"},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", name, http2), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					notAccepted(t, test.filter, http2, test.path, func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Type", test.media)
						for range 16<<20/len(test.content) + 1 {
							if _, err := io.WriteString(w, test.content); err != nil {
								return
							}
						}
					})
				})
			})
		}
	}
}

func notAccepted(t *testing.T, filter func(http.Handler) http.Handler, http2 bool, path string, h http.HandlerFunc) {
	target := wiretest.Server(&http.Server{Handler: h, ErrorLog: wiretest.Quiet()})
	group := must(upstream.New(upstream.Options{Protocol: upstream.HTTP1, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _ = target.Serve(wiretest.OneConn(far)) }()
		return near, nil
	}}, upstream.Target{Addr: "192.0.2.1:80"}))
	var kinds []culvert.ErrorKind
	p := must(proxy.New(proxy.Options{Upstream: group, WriteTimeout: 5 * time.Second, OnError: func(_ *http.Request, e *culvert.Error) { kinds = append(kinds, e.Kind) }}))
	ended := make(chan struct{})
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	near, far := net.Pipe()
	s := wiretest.Server(&http.Server{Protocols: &protocols, ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		filter(p).ServeHTTP(w, r)
	})})
	go func() { _ = s.Serve(wiretest.OneConn(far)) }()
	client := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	defer func() {
		near.Close()
		client.CloseIdleConnections()
		_ = s.Close()
		_ = p.Drain(context.Background())
		_ = group.Close()
		_ = target.Close()
		time.Sleep(time.Hour) // net/http's servers linger
	}()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://gateway.test"+path, nil))
	resp, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Minute):
		t.Fatal("the handler is held")
	}
	if len(kinds) != 1 || kinds[0] != culvert.ClientGone {
		t.Errorf("OnError is called with %v, want %v", kinds, culvert.ClientGone)
	}
}
