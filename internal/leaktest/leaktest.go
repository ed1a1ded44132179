// Package leaktest fails a test that leaks goroutines or file descriptors.
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

// Check compares the number of goroutines and descriptors at the end of t with that at
// its start. It waits for stragglers, half a minute at most. Call it before the cleanups
// are registered that close what the test has opened. A test that calls it must not run in
// parallel with others; Run is for those.
func Check(t testing.TB) {
	t.Helper()
	startPoller()
	goroutines := runtime.NumGoroutine()
	descriptors := len(openDescriptors())
	t.Cleanup(func() {
		if problem := await(goroutines, descriptors); problem != "" {
			t.Errorf("leaktest: %s", problem)
		}
	})
}

// Run is Check for all tests of a package together, those that run in parallel included. It runs them and
// returns the exit code for TestMain: not 0 as well where they passed and have left something behind.
func Run(m interface{ Run() int }) (code int) {
	startPoller()
	goroutines := runtime.NumGoroutine()
	descriptors := len(openDescriptors())
	if code = m.Run(); code != 0 {
		return code
	}
	if problem := await(goroutines, descriptors); problem != "" {
		fmt.Println("leaktest: behind all tests:", problem)
		return 1
	}
	return 0
}

// await waits until there are no more goroutines and descriptors than there were, half a minute at most, and
// returns what remains, "" for nothing.
func await(goroutines, descriptors int) (problem string) {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for wait := time.Millisecond; wait < 20*time.Second; wait *= 2 {
		if !left(goroutines, descriptors) {
			return "" // the count may be another one the next time: the runtime does not make it of one moment
		}
		if wait > time.Millisecond {
			runtime.GC() // the runtime keeps pipes for splice until then (internal/poll, splicePipePool)
		}
		time.Sleep(wait)
	}
	return compare(goroutines, descriptors)
}

// left reports whether there are more goroutines or descriptors than there were.
func left(goroutines, descriptors int) bool {
	return runtime.NumGoroutine() > goroutines || len(openDescriptors()) > descriptors
}

// startPoller makes the runtime open the descriptors of its network poller. It opens them with the
// process's first connection, and keeps them: they would look like a leak of the first test.
func startPoller() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

func compare(goroutines, descriptors int) string {
	if n := runtime.NumGoroutine(); n > goroutines {
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		return fmt.Sprintf("%d goroutines, %d at the start\n%s", n, goroutines, strings.TrimSpace(string(buf)))
	}
	if open := openDescriptors(); len(open) > descriptors {
		return fmt.Sprintf("%d descriptors, %d at the start: %s", len(open), descriptors, strings.Join(open, " "))
	}
	return ""
}

// openDescriptors returns the number and the file of each of this process's descriptors, nil where
// the system does not list them.
func openDescriptors() (open []string) {
	const dir = "/proc/self/fd/"
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name, _ := os.Readlink(dir + e.Name()) // that of the directory itself is gone by now
		open = append(open, e.Name()+"="+name)
	}
	return open
}
