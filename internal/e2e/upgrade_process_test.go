package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// nginx is replaced by culvert while it serves, by signal USR2 as an administrator would, and culvert by nginx again. Each of the
// requests that are sent meanwhile gets its response.
func TestReplacedWithoutAGap(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "sbin")
	become := func(path string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program+".new", text, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil { // a program that runs can't be written
			t.Fatal(err)
		}
	}
	debian, err := exec.LookPath("nginx")
	if err != nil {
		debian = "/usr/sbin/nginx"
	}
	become(debian)
	address := wiretest.Free(t)
	writeFiles(t, dir, map[string]string{"nginx.conf": `user root; pid nginx.pid; error_log error.log;
events {}
http {
    access_log off;
    server { listen ` + address + `; listen unix:` + dir + `/s; return 200 "$pid\n"; }
}`})
	// nginx follows USR2 only where its parent is not the process that has started it.
	if out, err := exec.Command(program, "-g", "daemon on;", "-p", dir+"/", "-c", filepath.Join(dir, "nginx.conf"), "-e", filepath.Join(dir, "error.log")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := func(name string) int {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	master := 0
	// another waits for the file to name another process than before. What is compared is what is kept: while the file is
	// written anew it is empty, and a signal to 0 goes to this test's own process group.
	another := func() {
		t.Helper()
		next := 0
		waitFor(t, "another process", func() bool {
			next = pid("nginx.pid")
			return next > 0 && next != master
		})
		master = next
	}
	another()
	t.Cleanup(func() { _ = syscall.Kill(master, syscall.SIGKILL) })

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // each request needs a process that accepts
	stop, lost := make(chan struct{}), make(chan string, 1)
	go func() {
		fault := ""
		for {
			select {
			case <-stop:
				lost <- fault
				return
			default:
			}
			r, err := client.Get("http://" + address + "/")
			if err != nil {
				fault = err.Error()
				continue
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
				fault = r.Status
			}
			r.Body.Close()
		}
	}()
	for _, next := range []string{culvertNginx, debian} {
		become(next)
		if err := syscall.Kill(master, syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		old := master
		another()
		if got := pid("nginx.pid.oldbin"); got != old {
			t.Errorf("nginx.pid.oldbin has %d, want %d", got, old)
		}
		if err := syscall.Kill(old, syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of the old process", func() bool { // the next upgrade is ignored until then
			return pid("nginx.pid.oldbin") == 0 && parentOf(t, master) != old
		})
		if _, err := os.Stat(filepath.Join(dir, "s")); err != nil {
			t.Errorf("the unix socket: %v", err)
		}
		exe, err := os.Readlink("/proc/" + strconv.Itoa(master) + "/exe")
		if err != nil || exe != program {
			t.Errorf("the program that serves is %s, %v", exe, err)
		}
	}
	close(stop)
	if fault := <-lost; fault != "" {
		t.Errorf("a request was lost: %s", fault)
	}
	_ = syscall.Kill(master, syscall.SIGTERM)
	waitFor(t, "the end", func() bool { return pid("nginx.pid") == 0 })
}

// parentOf returns the parent of a process (proc(5), the fourth field of stat). A process that has ended has no children, even
// where nothing collects it.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	parent, err := strconv.Atoi(strings.Fields(rest)[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}
