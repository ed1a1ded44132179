package netloop

// HookWake makes s call fn before it wakes a loop. mayEnd reports whether the loop might end
// meanwhile.
func (s *Set) HookWake(fn func(mayEnd bool)) {
	s.wakeHook = func(l *Loop) {
		mayEnd := l.mu.TryLock()
		if mayEnd {
			l.mu.Unlock()
		}
		fn(mayEnd)
	}
}

// Asleep reports whether the loop waits until an event, with no time limit.
func (l *Loop) Asleep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asleep && l.wakeAt == forever
}

// Running reports whether the loop has not ended.
func (l *Loop) Running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// OneLoop returns a Set with one loop, for tests that depend on the order of events.
func OneLoop() *Set {
	s := new(Set)
	s.once.Do(func() { s.loops = []*Loop{{set: s}} })
	return s
}
