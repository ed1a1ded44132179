// Package gate counts what runs, and lets its owner wait until nothing runs any more.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
)

// Gate counts the holders that have entered. It is open until Drain. The zero value is an
// open gate. It is safe for concurrent use by multiple goroutines.
type Gate struct {
	running atomic.Int64
	closed  atomic.Bool
	mu      sync.Mutex
	idle    chan struct{} // closed when nothing runs any more; nil before idleChan
	drained chan struct{} // closed by Drain; nil before Drained
}

// Enter counts one more and returns how many run now. If ok is false, the gate is
// closed and nothing was counted.
func (g *Gate) Enter() (n int64, ok bool) {
	n = g.running.Add(1)
	if g.closed.Load() {
		g.Leave()
		return 0, false
	}
	return n, true
}

// Split counts one more, even after Drain. What it counts may run longer than its caller. If the
// caller has not entered, a Drain may have returned already.
func (g *Gate) Split() { g.running.Add(1) }

// Leave counts one less. It must be called once for each Enter that returned true and each Split.
func (g *Gate) Leave() {
	if g.running.Add(-1) == 0 && g.closed.Load() {
		g.closeIdle()
	}
}

// Running returns how many run.
func (g *Gate) Running() int { return int(g.running.Load()) }

// Drain closes the gate for good and waits until nothing runs any more. It returns ctx's
// error if ctx ends first.
func (g *Gate) Drain(ctx context.Context) error {
	idle := g.idleChan()
	g.close()
	if g.running.Load() == 0 {
		g.closeIdle()
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close closes the gate.
func (g *Gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed.Swap(true) && g.drained != nil {
		close(g.drained)
	}
}

// Drained returns a channel that Drain closes when it begins.
func (g *Gate) Drained() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.drained == nil {
		g.drained = make(chan struct{})
		if g.closed.Load() {
			close(g.drained)
		}
	}
	return g.drained
}

// idleChan returns g.idle, and makes it before its first use.
func (g *Gate) idleChan() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}

// closeIdle wakes those who wait in Drain.
func (g *Gate) closeIdle() {
	idle := g.idleChan()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-idle:
	default:
		close(idle)
	}
}
