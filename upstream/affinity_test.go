package upstream_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/upstream"
)

// A request gets the target that it wants while that is available. A draining target gets no others.
func TestAffinity(t *testing.T) {
	want := func(key string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Want", key) } }
	o := upstream.AffinityOptions{Want: func(r *http.Request) string { return r.Header.Get("Want") }, Key: func(t upstream.Target) string { return "key of " + t.Addr }}
	p := newPicks(t, upstream.Options{Balance: upstream.Affinity(o)},
		upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1"}, upstream.Target{Addr: "c:1", Draining: true}, upstream.Target{Addr: "d:1", Down: true})
	for _, tt := range []struct{ key, want string }{
		{"", "a b a b"}, {"key of b:1", "b b b"}, {"key of c:1", "c c c"}, {"key of d:1", "a b"}, {"nonsense", "a b"},
	} {
		if got := p.send((len(tt.want)+1)/2, want(tt.key)); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.key, got, tt.want)
		}
	}
	first, err := p.g.Pick(t.Context(), request(want("key of b:1")))
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.g.Pick(t.Context(), request(want("key of b:1")), first)
	if err != nil || name(second) != "a" {
		t.Errorf("behind b: %v", err)
	}
	if _, err := upstream.New(upstream.Options{Balance: upstream.Affinity(upstream.AffinityOptions{})}, addrs("a")...); err == nil {
		t.Error("an Affinity without functions is accepted")
	}
}
