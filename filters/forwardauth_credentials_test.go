package filters_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A service that judges by the first Authorization, and a target that believes the last one, must not get both.
func TestForwardAuthOfTwoCredentials(t *testing.T) {
	for _, test := range []struct {
		fields []string // nil: the default
		status int
	}{{nil, 400}, {[]string{"Cookie"}, 200}} {
		f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(204), RequestFields: test.fields, CacheTime: time.Minute}))
		for range 2 {
			if resp, _ := through(f, respond("ok"), get("Authorization", "Bearer mine", "Authorization", "Bearer forged")); resp.StatusCode != test.status {
				t.Errorf("%v: status %d", test.fields, resp.StatusCode)
			}
		}
	}
}

// A client can't remove a field of the response by naming it in Connection, also without a Chain, whose handler would have
// removed that.
func TestForwardAuthWithoutChain(t *testing.T) {
	leaktest.Check(t)
	received := make(chan http.Header, 1)
	target := wiretest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Clone() }))
	f := good(t)(filters.ForwardAuth(filters.ForwardAuthOptions{To: status(204, "X-User", "alice"), ResponseFields: []string{"X-User"}}))
	client := wiretest.Dial(t, wiretest.Serve(t, f(forwardTo(t, target))))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: X-User\r\nX-User: admin\r\n\r\n")
	client.Status(200)
	if got := wiretest.Await(t, received, "request"); len(got["X-User"]) != 1 || got.Get("X-User") != "alice" {
		t.Errorf("the target received %v", got)
	}
}
