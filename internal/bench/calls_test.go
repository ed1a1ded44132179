package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The system calls of a small request are counted, so that no change adds one unnoticed. From memory they are a look for the
// request, a read and a write; through package proxy a look at the kept connection, a write and a read come to them. Those
// that the scheduler makes depend on the machine and are not counted. A slow machine may look for the client once more.
func TestSystemCalls(t *testing.T) {
	content, err := respond("")
	if err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond) // or the response would be there before it is waited for: strace is slow
		content.ServeHTTP(w, r)
	}))
	defer origin.Close()
	for _, test := range []struct {
		name string
		most float64
	}{{memoryName, 3.6}, {ourName, 6.6}} {
		t.Run(test.name, func(t *testing.T) {
			process, err := startSelf(test.name, origin.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer process.stop()
			c, err := newClient(process.address, works()[0])
			if err != nil {
				t.Fatal(err)
			}
			defer c.conn.Close()
			const requests = 1000
			calls := traced(t, process, func() {
				for range requests {
					if err := c.exchange(); err != nil {
						t.Fatal(err)
					}
				}
			})
			sum := 0
			for name, n := range calls {
				if !scheduling[name] {
					sum += n
				}
			}
			if each := float64(sum) / requests; each > test.most {
				t.Errorf("%.2f system calls a request, at most %.2f: %v", each, test.most, calls)
			}
			if calls["write"] < requests/2 {
				t.Errorf("they were not counted: %v", calls)
			}
		})
	}
}

// scheduling are the calls of Go's scheduler, timers and memory.
var scheduling = map[string]bool{"futex": true, "nanosleep": true, "epoll_pwait": true, "epoll_wait": true, "sched_yield": true,
	"tgkill": true, "getpid": true, "rt_sigreturn": true, "rt_sigprocmask": true, "sigaltstack": true, "gettid": true, "clone": true,
	"clone3": true, "madvise": true, "mmap": true, "munmap": true, "restart_syscall": true, "exit": true, "mprotect": true,
	"prctl": true, "rseq": true, "set_robust_list": true, "clock_gettime": true, "clock_nanosleep": true, "sched_getaffinity": true}

// traced counts the system calls of a process while f runs.
func traced(t *testing.T, p *process, f func()) map[string]int {
	t.Helper()
	summary := filepath.Join(t.TempDir(), "summary")
	strace := exec.Command("strace", "-c", "-f", "-o", summary, "-p", strconv.Itoa(p.cmd.Process.Pid))
	said, err := strace.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := strace.Start(); err != nil {
		t.Fatal(err)
	}
	defer strace.Process.Kill()
	lines := bufio.NewScanner(said)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		t.Fatalf("strace: %q", lines.Text())
	}
	rest := make(chan bool)
	go func() {
		for lines.Scan() {
		}
		close(rest)
	}()
	f()
	_ = strace.Process.Signal(os.Interrupt)
	<-rest
	_ = strace.Wait()
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(string(text)) { // % time, seconds, usecs/call, calls, perhaps errors, syscall
		if fields := strings.Fields(line); len(fields) >= 5 {
			if n, err := strconv.Atoi(fields[3]); err == nil {
				calls[fields[len(fields)-1]] = n
			}
		}
	}
	delete(calls, "total")
	return calls
}
