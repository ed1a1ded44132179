package leaktest_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// recorder is a testing.TB whose cleanups run when the test calls finish, and whose failure it can read.
type recorder struct {
	testing.TB
	cleanups []func()
	failure  string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(_ string, args ...any) {
	r.failure = args[0].(string)
}

func (r *recorder) finish() string {
	for _, f := range r.cleanups {
		f()
	}
	return r.failure
}

func TestNoLeak(t *testing.T) {
	r := &recorder{TB: t}
	leaktest.Check(r)
	done := make(chan struct{})
	go close(done)
	<-done
	if failure := r.finish(); failure != "" {
		t.Error(failure)
	}
}

// In a bubble the wait for stragglers takes no real time.
func TestGoroutineLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		leaktest.Check(r)
		release := make(chan struct{})
		defer close(release)
		for range 10 { // a goroutine of the previous test may have been counted while it ended
			go leaked(release)
		}
		if failure := r.finish(); !strings.Contains(failure, "leaktest_test.leaked") {
			t.Errorf("failure %q", failure)
		}
	})
}

func leaked(release <-chan struct{}) { <-release }

func TestDescriptorLeak(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Log("descriptors can't be counted here; goroutines still are")
		return
	}
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		leaktest.Check(r)
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if failure := r.finish(); !strings.Contains(failure, "descriptors, ") {
			t.Errorf("failure %q", failure)
		}
	})
}

// The descriptors of the network poller, which the process's first connection opens, are no leak. The test
// runs in a process of its own, where the connection is the first one.
func TestFirstConnection(t *testing.T) {
	const inside = "LEAKTEST_FIRST_CONNECTION"
	if os.Getenv(inside) == "" {
		alone := exec.Command(os.Args[0], "-test.run=^TestFirstConnection$")
		alone.Env = append(os.Environ(), inside+"=1")
		if out, err := alone.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// tests stands in for a testing.M.
type tests func() (code int)

func (f tests) Run() int { return f() }

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		for want, run := range map[int]tests{
			0: func() int { return 0 },
			1: func() int {
				for range 10 { // a goroutine of the previous test may have been counted while it ended
					go leaked(release)
				}
				return 0
			},
			2: func() int { return 2 },
		} {
			if code := leaktest.Run(run); code != want {
				t.Errorf("code %d, want %d", code, want)
			}
		}
	})
}
