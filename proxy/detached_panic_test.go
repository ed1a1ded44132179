package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A hook that panics at the header of a 101 leaves nothing that a drain would wait for, whether tunnels are
// detached or not.
func TestDrainBehindAPanicAtTheHandshake(t *testing.T) {
	onPaths(t, testDrainBehindAPanicAtTheHandshake)
}
func testDrainBehindAPanicAtTheHandshake(t *testing.T, via path) {
	leaktest.Check(t)
	for _, detach := range []bool{false, true} {
		group := groupAt(t, upstream.Options{}, wiretest.Replying(t, switching))
		p := newProxy(t, via, proxy.Options{Upstream: group, DetachTunnels: detach})
		chain := filters.NewChain(filters.Recover(slog.New(slog.DiscardHandler)),
			filters.OnResponse(filters.ResponseHooks{Header: func(*http.Request, int, http.Header) { panic("a bug") }}))
		client := wiretest.Dial(t, wiretest.Serve(t, chain.Then(p)))
		client.Send(handshake)
		client.Status(500)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := p.Drain(ctx); err != nil {
			t.Errorf("detached %v: %v", detach, err)
		}
		if err := group.Drain(ctx); err != nil {
			t.Errorf("detached %v: the group: %v", detach, err)
		}
	}
}
