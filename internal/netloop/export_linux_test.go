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
	return l.asleep && l.members > 0
}

// Running reports whether the loop has not ended.
func (l *Loop) Running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}
