package upstream_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// The outcome of a request that was sent before Set counts by the current targets: a failure takes out
// a target that was the only one of its group, and the success of a request that was sent before does
// not end that.
func TestOutcomesAfterSet(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a")...)
	failing, slow := p.lease(), p.lease()
	if err := p.g.Set(addrs("a b")...); err != nil {
		t.Fatal(err)
	}
	failing.Done(upstream.Outcome{Err: errors.New("broken")})
	slow.Done(upstream.Outcome{Status: 200})
	p.want("b b b")
}

// The health of an address is kept for some time after it has left the set, however old its last failure is.
func TestFailingTargetLeavesForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := upstream.Target{Addr: "a:1", FailTimeout: time.Hour}
		other := upstream.Target{Addr: "b:1"}
		p := newPicks(t, upstream.Options{Balance: upstream.First()}, failing, other)
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

// So are the share of its failures, and how often in a row it was taken out.
func TestRemovedTargetKeepsShareAndTimes(t *testing.T) {
	a, b := upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1"}
	for what, o := range map[string]upstream.Options{
		"share": {FailRate: 0.5, FailMinRequests: 2, FailWindow: time.Minute},
		"times": {MaxFailTimeout: time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o.Balance = upstream.First()
				p := newPicks(t, o, a, b)
				p.lease().Done(outcomes['f'])
				time.Sleep(10*time.Second + time.Nanosecond)
				if what == "times" {
					p.lease().Done(outcomes['s']) // it is back
				}
				for _, set := range [][]upstream.Target{{b}, {a, b}} {
					if err := p.g.Set(set...); err != nil {
						t.Fatal(err)
					}
				}
				p.lease().Done(outcomes['f']) // the second of two, or the second time in a row
				if what == "times" {
					time.Sleep(20 * time.Second)
				}
				p.want("b")
			})
		})
	}
}
