package netloop_test

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/netloop"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// Ten thousand idle connections have no goroutines but the loops', and take at most 200 bytes each
// beside what package net and the kernel hold. Each ends its wait.
func TestManyIdleConnections(t *testing.T) {
	leaktest.Check(t)
	n := min(wiretest.Size(10000, 2000), (descriptorLimit(t)-200)/2)
	var s netloop.Set
	near, far := make([]net.Conn, n), make([]socket, n)
	for i := range n {
		a, b := sockets(t)
		near[i], far[i] = connOf(t, a), b
	}
	waiters := make([]*netloop.Waiter, n)
	var readable, timedOut atomic.Int64
	woken := func(r netloop.Reason) {
		if r == netloop.Readable {
			readable.Add(1)
		} else {
			timedOut.Add(1)
		}
	}
	goroutines, before := runtime.NumGoroutine(), memory()
	for i, c := range near {
		w := new(netloop.Waiter)
		if err := w.Init(&s, c, woken); err != nil {
			t.Fatal(err)
		}
		begin(t, w, time.Hour)
		waiters[i] = w
	}
	if each := (memory() - before) / int64(n); each > 200 {
		t.Errorf("a connection takes %d bytes", each)
	} else {
		t.Logf("a connection takes %d bytes", each)
	}
	if more, loops := runtime.NumGoroutine()-goroutines, max(1, runtime.GOMAXPROCS(0)/2); more > loops {
		t.Errorf("%d goroutines for %d connections", more, n)
	}
	for i := range n / 2 {
		far[i].send(t)
	}
	until(t, "the connections are readable", func() bool { return readable.Load() == int64(n/2) })
	for i, w := range waiters {
		if stopped := w.Stop(); stopped != (i >= n/2) {
			t.Fatalf("Stop of the connection %d returned %v", i, stopped)
		}
		_ = near[i].Close()
		far[i].close()
	}
	if r, o := readable.Load(), timedOut.Load(); r != int64(n/2) || o != 0 {
		t.Errorf("%d were readable, %d have timed out", r, o)
	}
}

// memory returns how many bytes the heap and the stacks take.
func memory() int64 {
	runtime.GC()
	runtime.GC() // for what the first one has made free
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func descriptorLimit(t *testing.T) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Cur, 1<<20))
}
