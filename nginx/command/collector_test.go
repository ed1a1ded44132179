package command

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// gogc returns the GOGC that is in force.
func gogc() uint64 {
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// awaitGOGC collects until GOGC is as it should be.
func awaitGOGC(t *testing.T, what string, ok func(percent uint64) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(gogc()); {
		if time.Now().After(deadline) {
			t.Fatalf("GOGC is %d with %s", gogc(), what)
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// A small heap is collected less often; a large one, of thousands of tunnels, does not grow to a multiple of its size.
func TestGOGCFollowsWhatIsLive(t *testing.T) {
	t.Setenv("GOGC", "")
	collectSeldom()
	if got := gogc(); got != mostPercent {
		t.Errorf("GOGC is %d at first", got)
	}
	large := make([]byte, 64<<20) // never touched: it uses no memory
	awaitGOGC(t, "64 MiB live", func(percent uint64) bool { return percent < 130 })
	runtime.KeepAlive(large)
	large = nil
	awaitGOGC(t, "next to nothing live", func(percent uint64) bool { return percent == mostPercent })
}

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 4 << 20: 400, 16 << 20: 200, 32 << 20: 150, 160 << 20: 110, 4 << 30: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d MiB: %d, want %d", live>>20, got, want)
		}
	}
}
