package upstream_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// A request that was sent before Set counts by the targets of now: what was the only target of its group then is taken
// out by a failure, and a request that it had before does not bring it back.
func TestOutcomesAfterSet(t *testing.T) {
	p := over(t, upstream.Options{}, addrs("a")...)
	failing, slow := p.lease(), p.lease()
	if err := p.g.Set(addrs("a b")...); err != nil {
		t.Fatal(err)
	}
	failing.Done(upstream.Outcome{Err: errors.New("broken")})
	slow.Done(upstream.Outcome{Status: 200})
	p.want("b b b")
}

// What is known of an address is kept for some time from when it leaves the set, however long ago it has failed.
func TestFailingTargetLeavesForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := upstream.Target{Addr: "a:1", FailTimeout: time.Hour}
		other := upstream.Target{Addr: "b:1"}
		p := over(t, upstream.Options{Balance: upstream.First()}, failing, other)
		p.broken["a"] = true
		p.want("a b")
		time.Sleep(30 * time.Minute)
		for _, set := range [][]upstream.Target{{other}, {other}, {failing, other}} {
			time.Sleep(time.Second)
			if err := p.g.Set(set...); err != nil {
				t.Fatal(err)
			}
		}
		p.want("b b")
	})
}
