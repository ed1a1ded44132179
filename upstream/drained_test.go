package upstream_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// drained returns the addresses of the targets that are drained.
func drained(g *upstream.Group) (list string) {
	for s := range g.Targets() {
		if s.Drained != (!s.Healthy && !s.Target.Down) {
			list += "?"
		}
		if s.Drained {
			list += s.Target.Addr
		}
	}
	return list
}

func TestSetDrained(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{"RoundRobin": upstream.RoundRobin(), "LeastConn": upstream.LeastConn(), "First": upstream.First()} {
		t.Run(name, func(t *testing.T) {
			p := newPicks(t, upstream.Options{Balance: balance}, addrs("a b")...)
			lease, err := p.g.Pick(t.Context(), request())
			if err != nil || lease.Addr() != "a:1" {
				t.Fatal(lease.Addr(), err)
			}
			if err := p.g.SetDrained("a:1", true); err != nil || drained(p.g) != "a:1" {
				t.Fatal(drained(p.g), err)
			}
			for s := range p.g.Targets() {
				if want := map[string]int{"a:1": 1}[s.Target.Addr]; s.InFlight != want || s.Target.Down {
					t.Errorf("%s: %d in flight, down %v", s.Target.Addr, s.InFlight, s.Target.Down)
				}
			}
			p.want("b b b")
			lease.Done(upstream.Outcome{Status: 200})
			p.want("b b")
			if err := p.g.Set(addrs("a b c")...); err != nil || drained(p.g) != "a:1" {
				t.Fatal(drained(p.g), err)
			}
			if err := errors.Join(p.g.SetDrained("b:1", true), p.g.SetDrained("c:1", true)); err != nil {
				t.Fatal(err)
			}
			_, err = p.g.Pick(t.Context(), request())
			if e := (*culvert.Error)(nil); !errors.As(err, &e) || e.Kind != culvert.NoTarget {
				t.Errorf("all are drained: %v", err)
			}
			if err := p.g.SetDrained("a:1", false); err != nil || drained(p.g) != "b:1c:1" {
				t.Fatal(drained(p.g), err)
			}
			p.want("a a")
			if err := p.g.SetDrained("d:1", true); err == nil || err.Error() != `upstream "app": no target "d:1"` {
				t.Errorf("error %v", err)
			}
		})
	}
}

// With a Source, too, a target is drained until it has been away for ten minutes.
func TestDrainedOutlivesTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := make(lists)
		g, err := upstream.New(upstream.Options{Source: lists})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for _, step := range []struct {
			list, want string
			after      time.Duration
		}{
			{"a b", "", 0}, {"a b c", "a:1", 0}, {"b", "", 0}, {"a b", "a:1", 9 * time.Minute}, {"b", "", 0}, {"b", "", 11 * time.Minute}, {"a b", "", 0},
		} {
			time.Sleep(step.after)
			lists <- addrs(step.list)
			synctest.Wait()
			if got := drained(g); got != step.want {
				t.Errorf("%s after %v: drained %q, want %q", step.list, step.after, got, step.want)
			}
			if step.list == "a b" && step.want == "" && step.after == 0 {
				_ = g.SetDrained("a:1", true)
			}
		}
	})
}

// lists is a Source.
type lists chan []upstream.Target

func (l lists) Watch(ctx context.Context, set func(...upstream.Target) error) {
	for {
		select {
		case list := <-l:
			_ = set(list...)
		case <-ctx.Done():
			return
		}
	}
}

// A request that waits for a place gets one at the target that is put back, and a drained target is not checked.
func TestDrainedIsNotChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checks := 0
		g, err := upstream.New(upstream.Options{Queue: 1, Check: &upstream.Check{Func: func(context.Context, upstream.Target) error { checks++; return nil }}},
			upstream.Target{Addr: "a:1"}, upstream.Target{Addr: "b:1", MaxConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if err := g.SetDrained("a:1", true); err != nil {
			t.Fatal(err)
		}
		first, err := g.Pick(t.Context(), request())
		if err != nil || first.Addr() != "b:1" {
			t.Fatal(first.Addr(), err)
		}
		waiting := make(chan upstream.Lease, 1)
		go func() {
			lease, _ := g.Pick(t.Context(), request())
			waiting <- lease
		}()
		synctest.Wait()
		if err := g.SetDrained("a:1", false); err != nil {
			t.Fatal(err)
		}
		if lease := <-waiting; lease.Addr() != "a:1" {
			t.Errorf("the waiting request got %q", lease.Addr())
		} else {
			lease.Done(upstream.Outcome{Status: 200})
		}
		first.Done(upstream.Outcome{Status: 200})
		if err := errors.Join(g.SetDrained("a:1", true), g.SetDrained("b:1", true)); err != nil {
			t.Fatal(err)
		}
		checks = 0
		time.Sleep(time.Hour)
		if checks != 0 {
			t.Errorf("%d checks of drained targets", checks)
		}
	})
}

// A drained target is not one of those that are left when failures would take the last one out.
func TestDrainedIsNotLeft(t *testing.T) {
	p := newPicks(t, upstream.Options{}, addrs("a b c")...)
	p.broken = map[string]bool{"b": true, "c": true}
	if err := p.g.SetDrained("a:1", true); err != nil {
		t.Fatal(err)
	}
	p.want("b c c c")
}

// A drained target gets no requests when the health of all does not count.
func TestDrainedInAPanic(t *testing.T) {
	p := newPicks(t, upstream.Options{PanicThreshold: 1}, addrs("a b c")...)
	p.broken["b"] = true
	if err := p.g.SetDrained("a:1", true); err != nil {
		t.Fatal(err)
	}
	p.want("b c c c b c")
}
