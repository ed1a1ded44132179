package command

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// spareHeap is the garbage that is allowed beyond the size of the live heap.
	spareHeap = 16 << 20
	// mostPercent is the highest GOGC: with almost nothing live, the heap grows to 16 MiB.
	mostPercent = 400
)

// collectSeldom makes the collection of a small heap less frequent, unless the environment sets GOGC. A gateway's live heap is
// small: with Go's 4 MiB the collector runs every few hundred requests, a tenth of all work. A constant GOGC with that
// effect would let the stacks and buffers of thousands of tunnels use several times their size, so GOGC goes down to
// Go's 100 as the live heap grows. It applies to the process, and is done once in it.
var collectSeldom = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostPercent)
	(&collection{live, mostPercent}).await()
})

// collection follows the collector: its finalizer runs after each cycle.
type collection struct {
	live    func() uint64
	percent int
}

func (c *collection) await() { runtime.SetFinalizer(c, (*collection).adjust) }

// adjust sets GOGC by the live heap that the cycle has found. Each change stops the program for a moment, so small ones are
// not made.
func (c *collection) adjust() {
	next := gcPercent(c.live())
	if d := next - c.percent; d > next/8 || -d > next/8 {
		debug.SetGCPercent(next)
		c.percent = next
	}
	c.await()
}

// gcPercent returns the GOGC with which the heap may grow by its live bytes and spareHeap.
func gcPercent(live uint64) int {
	if live < spareHeap*100/(mostPercent-100) {
		return mostPercent
	}
	return 100 + int(spareHeap*100/live)
}

// live returns the bytes from which the collector computes how far the heap may grow: objects, stacks and globals.
func live() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}
