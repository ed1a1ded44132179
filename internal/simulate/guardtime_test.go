package simulate

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An exchange ends within Timeout. A filter that writes after the proxy has returned has the time of one more write.
func TestWholeExchange(t *testing.T) {
	const s = time.Second
	kinds := map[string]int{}
	for i, k := range filterKinds {
		kinds[k.name] = i
	}
	for _, test := range []struct {
		filter       string
		proxy, after time.Duration // in the proxy, and after it
		broken       int
	}{
		{"Decompress", 5 * s, 0, 0},
		{"Decompress", 7 * s, 0, 1},
		{"Decompress", 0, 7 * s, 0},
		{"Decompress", 4 * s, 6 * s, 0},
		{"Decompress", 4 * s, 8 * s, 1},
		{"Decompress", 7 * s, s, 1},
		{"Records", 4 * s, 70 * s, 0},
		{"Records", 4 * s, 80 * s, 1},
		{"", -s, 5 * s, 0}, // refused by a filter
		{"", -s, 7 * s, 1},
	} {
		plan := &GatewayPlan{Timeout: 5 * s, WriteTimeout: 5 * s}
		if test.filter != "" {
			plan.Filters = []FilterPlan{{Kind: kinds[test.filter]}}
		}
		j := inBubble(t, mostSeconds, func(j *Journal) {
			j.start = time.Now().Add(-s)
			g := &gateway{journal: j, plan: &Plan{Gateway: *plan}}
			chain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.proxy >= 0 {
					g.observe(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(test.proxy) })).ServeHTTP(w, r)
				}
				time.Sleep(test.after)
			})
			r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/1", nil)
			guard(j, plan, g.enter(chain), false, true).ServeHTTP(httptest.NewRecorder(), r)
		})
		if len(j.broken) != test.broken {
			t.Errorf("%s, %v in the proxy and %v behind it: %v", test.filter, test.proxy, test.after, j.broken)
		}
	}
}
