package simulate

import (
	"slices"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// waitAnew records which waits may have begun again. If a request was refused unprocessed and no target is left that it has
// not tried, or none became free within QueueTimeout, it may get the target again that has refused it (proxy.Retry). It
// waits for that target once, after the other waiting requests.
func (b *batch) waitAnew() {
	m := b.m
	for _, w := range m.waits {
		if len(w.tried) == 0 || w.settled {
			continue
		}
		if over := w.from + m.w.plan.Upstream.queueTimeout(); m.at >= over {
			w.anew, w.settled = over, true
			continue
		}
		left := func(healthy func(upstream.Target, time.Duration) bool) bool {
			return slices.ContainsFunc(m.targets, func(t upstream.Target) bool {
				return !slices.Contains(w.tried, t.Addr) && healthy(t, m.at)
			})
		}
		if !left(m.surelyHealthy) {
			w.anew = m.at
		}
		w.settled = !left(m.maybeHealthy)
	}
}

// maybeHealthy reports whether t may be healthy at a moment, in some order of the events of one instant.
func (m *model) maybeHealthy(t upstream.Target, at time.Duration) bool {
	r := m.rules(t, len(m.targets))
	return !t.Down && slices.ContainsFunc(m.states[t.Addr].health, func(h health) bool { return h.available(r, at) })
}

// last returns the last moment at which the wait may have begun.
func (w *wait) last() time.Duration { return max(w.from, w.anew) }
