package proxy_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// A budget bounds the retries of many requests, and fills again.
func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget, err := proxy.NewRetryBudget(0.1, 2)
		if err != nil {
			t.Fatal(err)
		}
		a := &recordingTransport{broken: map[string]bool{"a": true}}
		targets := []upstream.Target{{Addr: "a:1", MaxFails: -1}, {Addr: "b:1"}}
		p := newProxy(t, anyPath, proxy.Options{Transport: a, Retry: proxy.Retry{Errors: true, Budget: budget},
			Upstream: groupOf(t, upstream.Options{Balance: upstream.First()}, targets...)})
		retried := func(n int) (count int) {
			a.order = nil
			for range n {
				a.get(p)
			}
			return len(a.order) - n
		}
		if got := retried(100); got != 12 { // two of the first second, one in ten
			t.Errorf("%d of 100 were retried, want 12", got)
		}
		time.Sleep(3 * time.Second)
		if got := retried(10); got != 7 { // three seconds of two, and one in ten
			t.Errorf("%d of 10 were retried, want 7", got)
		}
		time.Sleep(time.Hour)
		if got := retried(100); got != 30 { // what is saved up in ten seconds, and one in ten
			t.Errorf("%d of 100 were retried after an hour, want 30", got)
		}
	})
}

// A retry for which no target is left is not made, and costs the budget nothing, which other groups may share.
func TestRetryBudgetWithoutAnotherTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget, err := proxy.NewRetryBudget(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		a := &recordingTransport{broken: map[string]bool{"a": true}, status: map[string]int{"b": http.StatusServiceUnavailable}}
		proxies := map[string]*proxy.Proxy{}
		broken, busy := upstream.Target{Addr: "a:1", MaxFails: -1}, upstream.Target{Addr: "b:1"}
		for name, targets := range map[string][]upstream.Target{"broken": {broken}, "busy": {busy}, "both": {broken, {Addr: "c:1"}}} {
			proxies[name] = newProxy(t, anyPath, proxy.Options{Transport: a, Upstream: groupOf(t, upstream.Options{Balance: upstream.First()}, targets...),
				Retry: proxy.Retry{Errors: true, Statuses: []int{http.StatusServiceUnavailable}, Budget: budget}})
		}
		for _, step := range []struct {
			group string
			want  int
		}{
			{"broken", http.StatusBadGateway},
			{"busy", http.StatusServiceUnavailable},
			{"both", http.StatusNoContent},
			{"both", http.StatusBadGateway}, // behind the one retry that the budget has
		} {
			if w := a.get(proxies[step.group]); w.Code != step.want {
				t.Errorf("%s: status %d, want %d", step.group, w.Code, step.want)
			}
		}
	})
}
