// Package gate counts what runs, and lets somebody wait for its end.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
)

// Gate is open until Drain. The zero value is ready. It is safe for concurrent
// use.
type Gate struct {
	running atomic.Int64
	closed  atomic.Bool
	mu      sync.Mutex
	idle    chan struct{} // closed when nothing runs any more; made by Drain
}

// Enter counts one more and returns how many run now. If ok is false the gate is
// closed and nothing was counted.
func (g *Gate) Enter() (n int64, ok bool) {
	n = g.running.Add(1)
	if g.closed.Load() {
		g.Leave()
		return 0, false
	}
	return n, true
}

// Split counts one more beside one that runs, so that it may outlive it.
func (g *Gate) Split() { g.running.Add(1) }

// Leave counts one less.
func (g *Gate) Leave() {
	if g.running.Add(-1) == 0 && g.closed.Load() {
		g.tell()
	}
}

// Running returns how many run.
func (g *Gate) Running() int { return int(g.running.Load()) }

// Drain closes the gate for good and returns when nothing runs any more, or with
// ctx's error when that ends before.
func (g *Gate) Drain(ctx context.Context) error {
	idle := g.wait()
	g.closed.Store(true)
	if g.running.Load() == 0 {
		g.tell()
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *Gate) wait() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	return g.idle
}

func (g *Gate) tell() {
	idle := g.wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-idle:
	default:
		close(idle)
	}
}
