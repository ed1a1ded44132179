package upstream

import (
	"net/http"
	"sync/atomic"
)

// targets is one set of targets. It is immutable, except for panicking.
type targets struct {
	members         []*member
	primary, backup tier
	slowStart       bool // some targets may be in their slow start

	// panicking is set while fewer members are available than Options.PanicThreshold: the health of all does not count.
	panicking atomic.Bool
}

// tier is the part of a set whose targets are, or are not, backups.
type tier struct {
	picker picker // nil if the tier has no members
}

// newTargets returns the set of list, which replaces before.
func newTargets(list []Target, o Options, before *targets, stateOf func(key string) *state) *targets {
	s := &targets{slowStart: o.SlowStart > 0}
	var primary, backup []*member
	for _, t := range list {
		addr := addrOf(t.Addr)
		st := stateOf(t.key())
		addr.Secure, addr.TLS = t.Scheme == "https", newOwnTLS(&t, &o, st.current.Load())
		m := &member{Target: t, state: st, drained: st.drained, set: s, addr: addr, host: hostOf(addr), only: len(list) == 1, maxFailTimeout: o.MaxFailTimeout, slowStart: o.SlowStart}
		s.members = append(s.members, m)
		if t.Backup {
			m.index = len(backup)
			backup = append(backup, m)
		} else {
			m.index = len(primary)
			primary = append(primary, m)
		}
	}
	s.primary.fill(o.Balance, primary, before.primary.picker)
	s.backup.fill(o.Balance, backup, before.backup.picker)
	return s
}

func (t *tier) fill(b Balance, members []*member, before picker) {
	if len(members) == 0 {
		return
	}
	t.picker = b.newPicker(members, before)
	for _, m := range members {
		m.picker = t.picker
	}
}

// pick acquires a member for the query; it returns nil if none is available.
func (s *targets) pick(q query) *member {
	for _, t := range [...]*tier{&s.primary, &s.backup} {
		if t.picker == nil {
			continue
		}
		if m := t.picker.pick(q); m != nil {
			return m
		}
		if s.slowStart {
			q.how = ignoreSlowStart
			if m := t.picker.pick(q); m != nil {
				return m
			}
			q.how = strict
		}
	}
	return nil
}

// binds reports whether r is bound to one of the targets: another one, beside it, does not know the client.
func (s *targets) binds(r *http.Request) bool {
	for _, t := range [...]*tier{&s.primary, &s.backup} {
		if b, ok := t.picker.(binder); ok && b.binds(r) {
			return true
		}
	}
	return false
}

// mayBecomeFree reports whether a member that could not be picked could be if it had fewer requests.
// It may have fewer by now: the goroutine that has ended one serves the queue.
func (s *targets) mayBecomeFree(q query) bool {
	for _, m := range s.members {
		if m.MaxConns > 0 && m.available() && !q.wasTried(m) {
			return true
		}
	}
	return false
}

func (s *targets) has(st *state) bool {
	for _, m := range s.members {
		if m.state == st {
			return true
		}
	}
	return false
}
