// Package leaktest fails a test that leaves goroutines or file descriptors
// behind.
package leaktest

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Check compares the goroutines and descriptors at the end of t with those at
// its start, and waits up to half a minute for stragglers to end. Call it first,
// before the cleanups that close what the test opened are registered. A test
// that calls it must not run in parallel with others.
func Check(t testing.TB) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	descriptors := openDescriptors()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		problem := compare(goroutines, descriptors)
		for wait := time.Millisecond; problem != "" && wait < 20*time.Second; wait *= 2 {
			runtime.GC() // the runtime keeps pipes for splice until then (internal/poll, splicePipePool)
			time.Sleep(wait)
			problem = compare(goroutines, descriptors)
		}
		if problem != "" {
			t.Errorf("leaktest: %s", problem)
		}
	})
}

func compare(goroutines, descriptors int) string {
	if n := runtime.NumGoroutine(); n > goroutines {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		return fmt.Sprintf("%d goroutines, %d at the start\n%s", n, goroutines, strings.TrimSpace(string(buf)))
	}
	if n := openDescriptors(); n > descriptors {
		return fmt.Sprintf("%d descriptors, %d at the start", n, descriptors)
	}
	return ""
}

// openDescriptors counts this process's descriptors; -1 where the system
// does not list them.
func openDescriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}
