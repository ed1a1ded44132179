package netloop_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/netloop"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// Connections are waited for, written to, stopped and replaced at random and at the same time. Each
// wait ends once, by what could end it.
func TestRandomWaits(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var running sync.WaitGroup
	for i := range uint64(16) {
		running.Go(func() {
			r := &randomWaits{t: t, s: s, rand: rand.New(rand.NewPCG(seed, i))}
			r.replace()
			for range wiretest.Size(3000, 500) {
				r.wait()
				if r.rand.IntN(4) == 0 {
					r.replace()
				}
			}
			_ = r.near.Close()
			_ = r.far.Close()
		})
	}
	running.Wait()
}

// stopped is the end of a wait that Stop has ended.
const stopped = netloop.Reason(-1)

// randomWaits is the owner of a connection.
type randomWaits struct {
	t         *testing.T
	s         *netloop.Set
	rand      *rand.Rand
	near, far net.Conn
	w         *netloop.Waiter
	ended     atomic.Pointer[chan netloop.Reason] // of the present wait
}

// replace makes another connection take the place of the former one.
func (r *randomWaits) replace() {
	if r.near != nil {
		_ = r.near.Close()
		_ = r.far.Close()
	}
	r.near, r.far = unixPair(r.t)
	r.w = new(netloop.Waiter)
	if err := r.w.Init(r.s, r.near, func(why netloop.Reason) { *r.ended.Load() <- why }); err != nil {
		r.t.Error(err)
	}
}

// wait waits for the connection, and does at the same time what may end that.
func (r *randomWaits) wait() {
	var timeout time.Duration
	if r.rand.IntN(2) == 0 {
		timeout = time.Duration(1 + r.rand.IntN(2)*1000000)
	}
	writes, stops := r.rand.IntN(3) == 0, r.rand.IntN(3) == 0
	if timeout == 0 && !stops {
		writes = true
	}
	ended := make(chan netloop.Reason, 4)
	r.ended.Store(&ended)
	var acting sync.WaitGroup
	defer r.drain()
	defer acting.Wait()
	if writes {
		acting.Go(func() { _, _ = r.far.Write([]byte("x")) })
	}
	if err := r.w.Wait(timeout); err != nil {
		r.t.Error(err)
		return
	}
	if stops {
		for range 2 {
			acting.Go(func() {
				if r.w.Stop() {
					ended <- stopped
				}
			})
		}
	}
	var why netloop.Reason
	select {
	case why = <-ended:
	case <-time.After(30 * time.Second):
		r.t.Errorf("a wait has not ended: timeout %v, written to %v, stopped %v", timeout, writes, stops)
	}
	acting.Wait()
	switch {
	case why == netloop.TimedOut && timeout == 0, why == stopped && !stops, why == netloop.Readable && r.empty():
		r.t.Errorf("a wait ended by %d: timeout %v, written to %v, stopped %v", why, timeout, writes, stops)
	case r.w.Stop():
		r.t.Error("a wait has ended, and was stopped after that")
	}
	if len(ended) > 0 {
		r.t.Errorf("a wait has ended twice, by %d and %d", why, <-ended)
	}
}

// empty reports whether there is nothing to read.
func (r *randomWaits) empty() (empty bool) {
	raw, _ := r.near.(syscall.Conn).SyscallConn()
	_ = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		empty = err == syscall.EAGAIN
	})
	return empty
}

// drain reads what was written.
func (r *randomWaits) drain() {
	if !r.empty() {
		_, _ = r.near.Read(make([]byte, 16))
	}
}
