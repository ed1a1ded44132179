package watchcodec_test

import (
	"compress/gzip"
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

// The time that the filter waits for a list within a write of a resumed watch does not count as the
// client's.
func TestLateListIsNotTheClients(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("gzip %v, HTTP/2 %v", compressed, http2), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testLateList(t, compressed, http2) })
			})
		}
	}
}

func testLateList(t *testing.T, compressed, http2 bool) {
	added := strings.Repeat(pod("ADDED", "new", "yes", "7"), 100) // more than net/http's writer holds
	target := wiretest.Server(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.URL.RawQuery, "watch=1") {
			time.Sleep(20 * time.Second)
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`+item("had", "yes")+`]}`)
			return
		}
		out := io.Writer(w)
		if compressed {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			out = z
		}
		_, _ = io.WriteString(out, added+pod("MODIFIED", "had", "no", "8"))
	})})
	group := must(upstream.New(upstream.Options{Protocol: upstream.HTTP1, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _ = target.Serve(wiretest.OneConn(far)) }()
		return near, nil
	}}, upstream.Target{Addr: "192.0.2.1:80"}))
	var failures []error
	p := must(proxy.New(proxy.Options{Upstream: group, WriteTimeout: 5 * time.Second, OnError: func(_ *http.Request, e *culvert.Error) { failures = append(failures, e) }}))
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	near, far := net.Pipe()
	s := wiretest.Server(&http.Server{Protocols: &protocols, ErrorLog: wiretest.Quiet(), Handler: must(newSmallFilter())(p)})
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
	r := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://gateway.test/api/v1/pods?watch=1&resourceVersion=7", nil))
	resp, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != added+gone("had", "8") || err != nil || len(failures) > 0 {
		t.Errorf("the client receives %q, %v; failures %v", got, err, failures)
	}
}
