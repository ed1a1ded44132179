// Package iolock has a mutex to be held while its holder waits for a peer.
package iolock

import "sync"

// Lock is a mutex that may be held during reads and writes of a connection. It excludes as sync.Mutex does; but
// those who wait for it wait as they would for a channel, so that time passes in a testing/synctest bubble,
// which it does not while a goroutine waits for a sync.Mutex. The zero Lock is free. It must not be copied
// while it is in use.
type Lock struct {
	mu   sync.Mutex // guards held
	held bool
	free sync.Cond
}

// Lock waits until the lock is free, and takes it.
func (l *Lock) Lock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held {
		l.free.L = &l.mu
		l.free.Wait()
	}
	l.held = true
}

// TryLock takes the lock if that is free, and reports whether it was.
func (l *Lock) TryLock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return false
	}
	l.held = true
	return true
}

// Unlock frees the lock.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.free.Signal()
}
