package upstream_test

import (
	"errors"
	"testing"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// Targets of one address with different IDs have their own health, turns and requests, and each may get a request that the other
// has had.
func TestTargetsOfOneAddr(t *testing.T) {
	p := newPicks(t, upstream.Options{},
		upstream.Target{Addr: "a:1", MaxConns: 1, FailTimeout: time.Hour}, upstream.Target{Addr: "a:1", ID: "2", FailTimeout: time.Hour}, upstream.Target{Addr: "b:1"})
	first := p.lease()
	second := p.lease(first)
	if name(first) != "a" || name(second) != "a" {
		t.Fatalf("leased %s and %s", name(first), name(second))
	}
	if third := p.lease(first, second); name(third) != "b" {
		t.Errorf("a third time, leased %s", name(third))
	}
	second.Done(upstream.Outcome{Err: errors.New("broken")})
	var ejected []bool
	for s := range p.g.Targets() {
		ejected = append(ejected, s.Ejected)
	}
	if ejected[0] || !ejected[1] {
		t.Errorf("ejected %v", ejected)
	}
	if err := p.g.SetDrained("a:1", true); err != nil {
		t.Fatal(err)
	}
	p.want("b b b")
}
