package proxy_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A gRPC client receives the gateway's own failure as a grpc-status, in a header section that ends the stream.
func TestFailuresOfGRPC(t *testing.T) {
	leaktest.Check(t)
	silent := wiretest.Target(t, func(p *wiretest.Peer) { p.Header(); p.Ended() })
	for name, test := range map[string]struct {
		target  upstream.Target
		options proxy.Options
		want    map[string]string
	}{
		"no target": {upstream.Target{Addr: "127.0.0.1:1", Down: true}, proxy.Options{}, map[string]string{":status": "200", "Content-Type": "application/grpc", "Grpc-Status": "14"}},
		"dial":      {upstream.Target{Addr: wiretest.Free(t)}, proxy.Options{}, map[string]string{":status": "200", "Grpc-Status": "14", "Grpc-Message": "Bad Gateway"}},
		"timeout":   {upstream.Target{Addr: silent}, proxy.Options{Timeout: 50 * time.Millisecond}, map[string]string{":status": "200", "Grpc-Status": "4"}},
		"own": {upstream.Target{Addr: wiretest.Free(t)}, proxy.Options{ErrorHandler: func(w http.ResponseWriter, _ *http.Request, e *culvert.Error) {
			w.WriteHeader(e.Status())
		}}, map[string]string{":status": "502", "Grpc-Status": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := upstream.New(upstream.Options{}, test.target)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			test.options.Upstream = g
			p, err := proxy.New(test.options)
			if err != nil {
				t.Fatal(err)
			}
			frames := wiretest.NewFrames(t, p)
			frames.Post(true, "content-type", "application/grpc", "te", "trailers")
			h, end := frames.Response()
			if !end {
				t.Error("the header section does not end the stream")
			}
			for name, want := range test.want {
				if got := h.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}
