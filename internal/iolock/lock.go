// Package iolock provides a mutex that may be held while its holder waits for a peer.
package iolock

import "sync"

// Lock is a mutex that may be held during reads and writes of a connection. It excludes as sync.Mutex does, but
// a goroutine that waits for it is durably blocked in a testing/synctest bubble, so that virtual time advances.
// It does not while a goroutine waits for a sync.Mutex. The zero Lock is unlocked. A Lock must not be copied after
// its first use.
type Lock struct {
	mu   sync.Mutex // guards held
	held bool
	free sync.Cond
}

// Lock waits until l is unlocked, and locks it.
func (l *Lock) Lock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held {
		l.free.L = &l.mu
		l.free.Wait()
	}
	l.held = true
}

// TryLock locks l if it is unlocked, and reports whether it did.
func (l *Lock) TryLock() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return false
	}
	l.held = true
	return true
}

// Unlock unlocks l.
func (l *Lock) Unlock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	l.free.Signal()
}
