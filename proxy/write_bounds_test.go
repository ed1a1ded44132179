package proxy_test

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A target that does not accept a request, of which the body is sent in one piece with the header, holds the exchange
// no longer than Timeout. While that lasts a client that leaves is noticed, too.
func TestTargetThatAcceptsNoRequest(t *testing.T) {
	for name, test := range map[string]struct {
		timeout, leaves time.Duration // 0: it stays
		want            proxy.Kind
	}{
		"Timeout":           {5 * time.Second, 0, proxy.Timeout},
		"the client leaves": {time.Minute, 5 * time.Second, proxy.ClientGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var far net.Conn
				group := groupAt(t, upstream.Options{DialContext: func(context.Context, string, string) (near net.Conn, err error) {
					near, far = net.Pipe() // which holds nothing
					return near, nil
				}}, "192.0.2.1:80")
				var seen failures
				p := newProxy(t, proxy.Options{Upstream: group, Timeout: test.timeout, OnError: seen.add})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.leaves > 0 {
					time.AfterFunc(test.leaves, cancel)
				}
				r := httptest.NewRequestWithContext(ctx, "PUT", "/", strings.NewReader(strings.Repeat("x", 20_000)))
				start := time.Now()
				func() {
					defer func() { _ = recover() }() // nothing is sent to a client that has left
					p.ServeHTTP(httptest.NewRecorder(), r)
				}()
				if took := time.Since(start); took != 5*time.Second {
					t.Errorf("it took %v", took)
				}
				var e *proxy.Error
				if len(seen.all) != 1 || !errors.As(seen.all[0], &e) || e.Kind != test.want {
					t.Errorf("failures %v, want %v", seen.all, test.want)
				}
				far.Close()
				_ = group.Close()
				synctest.Wait()
			})
		})
	}
}
