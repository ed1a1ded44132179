package simulate

import (
	"testing"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// A wait begins again when no target is left that its request has not tried, and not at each instant that follows. The time
// at which it began first is kept.
func TestWaitThatBeginsAgain(t *testing.T) {
	a, b := upstream.Target{Addr: "a", MaxConns: 1}, upstream.Target{Addr: "b", MaxConns: 1}
	out := health{out: true, since: 3 * time.Second}
	m := &model{w: &world{plan: simplest()}, targets: []upstream.Target{a, b}, states: map[string]*modelTarget{"a": {health: healths{{}}}, "b": {health: healths{{}}}}}
	w := &wait{from: time.Second, tried: []string{"a"}}
	fresh := &wait{from: time.Second}
	m.waits = []*wait{w, fresh}
	for _, step := range []struct {
		at   time.Duration
		b    healths
		gone bool
		want time.Duration
	}{
		{at: 2 * time.Second, b: healths{{}}, want: time.Second},          // b is left
		{at: 3 * time.Second, b: healths{{}, out}, want: 3 * time.Second}, // perhaps
		{at: 4 * time.Second, b: healths{{}}, want: 3 * time.Second},
		{at: 5 * time.Second, gone: true, want: 5 * time.Second},
		{at: 6 * time.Second, gone: true, want: 5 * time.Second},
		{at: 7 * time.Second, b: healths{{}}, want: 5 * time.Second},
		{at: 8 * time.Second, gone: true, want: 5 * time.Second},
	} {
		m.at, m.states["b"].health, m.targets = step.at, step.b, []upstream.Target{a, b}
		if step.gone {
			m.targets = m.targets[:1]
		}
		(&batch{m: m}).waitAnew()
		if w.last() != step.want || w.from != time.Second || fresh.last() != time.Second {
			t.Errorf("at %v: the waits began at %v (at first at %v) and %v, want %v", step.at, w.last(), w.from, fresh.last(), step.want)
		}
	}
}

// A wait begins again once, too, when the QueueTimeout is over in which no target has become free that its request has not
// tried, and not before.
func TestWaitBehindTheQueueTimeout(t *testing.T) {
	b := upstream.Target{Addr: "b", MaxConns: 1}
	m := &model{w: &world{plan: simplest()}, targets: []upstream.Target{b}, states: map[string]*modelTarget{"b": {health: healths{{}}}}}
	m.w.plan.Upstream.QueueTimeout = 2 * time.Second
	w, fresh := &wait{from: time.Second, tried: []string{"a"}}, &wait{from: time.Second}
	m.waits = []*wait{w, fresh}
	for _, step := range []struct {
		at, want time.Duration
		gone     bool
	}{
		{at: 2999 * time.Millisecond, want: time.Second},
		{at: 3100 * time.Millisecond, want: 3 * time.Second},
		{at: 4 * time.Second, want: 3 * time.Second, gone: true},
		{at: 5 * time.Second, want: 3 * time.Second},
	} {
		m.at, m.targets = step.at, []upstream.Target{b}
		if step.gone {
			m.targets = nil
		}
		(&batch{m: m}).waitAnew()
		if w.last() != step.want || fresh.last() != time.Second {
			t.Errorf("at %v: the waits began at %v and %v, want %v and the first's own time", step.at, w.last(), fresh.last(), step.want)
		}
	}
}
