//go:build unix

package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// pid returns the process of a pid file.
func (p *process) pid(name string) int {
	pid, _ := strconv.Atoi(strings.TrimSpace(p.file(name)))
	return pid
}

// another waits for the file to name another process than old, and ends that one with the test. What is compared is what is
// returned: while the file is written anew it is empty, and a signal to 0 goes to the test's own process group.
func (p *process) another(name string, old int) int {
	p.t.Helper()
	pid := 0
	p.eventually("has started another process", func() bool {
		pid = p.pid(name)
		return pid > 0 && pid != old
	})
	p.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// runs reports whether a process is there.
func runs(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// command returns the program's command line for the folder.
func (p *process) command(args ...string) *exec.Cmd {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"-p", p.dir, "-c", "nginx.conf"}, args...)...)
	cmd.Env = append(os.Environ(), asNginx+"=1")
	return cmd
}

// With "daemon on" the command ends with 0 once another process serves, in a session of its own, whose pid is in the file; its
// standard error, which a shell may wait for, is closed. The process has the name of the program's file.
func TestDaemon(t *testing.T) {
	p := &process{t: t, dir: t.TempDir(), address: wiretest.Free(t)}
	p.write("server { listen ADDRESS; return 200 daemon; }")
	var output bytes.Buffer
	cmd := p.command("-g", "daemon on;")
	cmd.Stdout, cmd.Stderr = &output, &output // pipes: Run ends at their end
	if err := cmd.Run(); err != nil || output.Len() > 0 {
		t.Fatalf("%v, printed %q\n%s", err, output.String(), p.file("error.log"))
	}
	pid := p.another("nginx.pid", 0)
	if pid == cmd.Process.Pid || !runs(pid) {
		t.Fatalf("the pid file has %d, the command was %d", pid, cmd.Process.Pid)
	}
	session, name, err := sessionOf(pid)
	if err != nil || session != pid {
		t.Errorf("the session is %d, %v", session, err)
	}
	if file := filepath.Base(cmd.Path); !strings.HasPrefix(file, name) { // of which 15 bytes are kept
		t.Errorf("the process is called %q, its file %q", name, file)
	}
	if got := p.get("/"); got != "daemon" {
		t.Errorf("got %q", got)
	}
	if out, err := p.command("-s", "quit").CombinedOutput(); err != nil {
		t.Errorf("-s quit: %v %s", err, out)
	}
	p.eventually("ended", func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "nginx.pid"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// sessionOf returns the session of a process and its name, by which start-stop-daemon finds it (proc(5), the sixth and the
// second field of stat).
func sessionOf(pid int) (session int, name string, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, "", err
	}
	before, rest, _ := strings.Cut(string(stat), ") ")
	_, name, _ = strings.Cut(before, " (")
	session, err = strconv.Atoi(strings.Fields(rest)[3])
	return session, name, err
}

// A daemon that cannot serve is an error of the command, with its text.
func TestDaemonThatFails(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	p := &process{t: t, dir: t.TempDir(), address: busy.Addr().String()}
	p.write("server { listen ADDRESS; }")
	out, err := p.command("-g", "daemon on;").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "failed (98: Address already in use)") {
		t.Errorf("%v, printed %q", err, out)
	}
	if p.file("nginx.pid") != "" {
		t.Errorf("a pid file is there")
	}
}

// An upgrade (USR2) starts the program anew with the sockets of the old process; both serve, and the old one quits without
// taking anything of the new one's with it.
func TestUpgrade(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; listen unix:DIR/s; return 200 $pid; }")
	old := p.cmd.Process.Pid
	if got := p.get("/"); got != strconv.Itoa(old) {
		t.Fatalf("got %q", got)
	}
	p.signal(syscall.SIGUSR2)
	next := p.another("nginx.pid", old)
	if got := p.pid("nginx.pid.oldbin"); got != old {
		t.Errorf("nginx.pid.oldbin has %d, want %d", got, old)
	}
	_ = syscall.Kill(next, syscall.SIGUSR2) // one is replaced at a time
	p.signal(syscall.SIGUSR2)
	p.eventually("refuses another upgrade", func() bool {
		return strings.Count(p.file("error.log"), "the changing binary signal is ignored") == 2
	})
	p.eventually("shares the connections", func() bool { return p.get("/") == strconv.Itoa(next) })
	p.signal(syscall.SIGQUIT)
	p.eventually("ended", func() bool { return !runs(old) })
	if got := p.pid("nginx.pid"); got != next || p.file("nginx.pid.oldbin") != "" {
		t.Errorf("nginx.pid has %d, want %d; nginx.pid.oldbin has %q", got, next, p.file("nginx.pid.oldbin"))
	}
	for range 10 {
		if got := p.get("/"); got != strconv.Itoa(next) {
			t.Errorf("behind the upgrade: %q, want %d", got, next)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "s")); err != nil {
		t.Errorf("the unix socket: %v", err)
	}
	_ = syscall.Kill(next, syscall.SIGQUIT)
	p.eventually("ended", func() bool { return p.file("nginx.pid") == "" })
	p.eventually("removed its socket", func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "s"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// An old binary stops accepting by WINCH, and accepts again by HUP, so that an upgrade can be taken back.
func TestUpgradeIsTakenBack(t *testing.T) {
	p := &process{t: t, dir: t.TempDir(), address: wiretest.Free(t)}
	p.write("server { listen ADDRESS; return 200 $pid; }")
	if err := p.command("-g", "daemon on;").Run(); err != nil {
		t.Fatalf("%v\n%s", err, p.file("error.log"))
	}
	old := p.another("nginx.pid", 0)
	_ = syscall.Kill(old, syscall.SIGUSR2)
	next := p.another("nginx.pid", old)
	p.eventually("shares the connections", func() bool { return p.get("/") == strconv.Itoa(next) })
	_ = syscall.Kill(old, syscall.SIGWINCH)
	p.eventually("has stopped accepting", func() bool {
		log := p.file("error.log")
		return strings.Contains(log, "(SIGWINCH) received, stop accepting connections") && strings.Contains(log, fmt.Sprintf("worker process %d exited with code 0", old))
	})
	for range 20 {
		if got := p.get("/"); got != strconv.Itoa(next) {
			t.Errorf("behind WINCH: %q, want %d", got, next)
		}
	}
	_ = syscall.Kill(old, syscall.SIGHUP)
	p.eventually("accepts again", func() bool { return p.get("/") == strconv.Itoa(old) })
	_ = syscall.Kill(next, syscall.SIGQUIT)
	p.eventually("is the only one again", func() bool { return p.pid("nginx.pid") == old && p.file("nginx.pid.oldbin") == "" })
	for range 10 {
		if got := p.get("/"); got != strconv.Itoa(old) {
			t.Errorf("behind the upgrade: %q, want %d", got, old)
		}
	}
	_ = syscall.Kill(old, syscall.SIGTERM)
	p.eventually("ended", func() bool { return p.file("nginx.pid") == "" })
}

// A new binary that can't start leaves all as it was.
func TestUpgradeThatFails(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; return 200 $pid; }")
	p.writeFile("nonsense")
	for range 2 { // it may be tried again
		p.signal(syscall.SIGUSR2)
		p.eventually("renamed the pid file", func() bool { return strings.Contains(p.file("error.log"), "start new binary process") })
		p.eventually("renamed it again", func() bool { return p.pid("nginx.pid") == p.cmd.Process.Pid && p.file("nginx.pid.oldbin") == "" })
	}
	if got := p.get("/"); got != strconv.Itoa(p.cmd.Process.Pid) {
		t.Errorf("got %q", got)
	}
	p.signal(syscall.SIGTERM)
	_ = wiretest.Await(t, p.done, "end")
}

// A process of root's becomes the user of the configuration once its addresses are bound: it has read what only root may read, and
// serves what the user may read.
func TestUser(t *testing.T) {
	if os.Geteuid() != 0 { // another user's process can't change, and logs that
		p := startProcessOf(t, "user nobody;\n"+(*process)(nil).conf("server { listen ADDRESS; return 200 ok; }"))
		p.eventually("warned", func() bool { return strings.Contains(p.file("error.log"), `the "user" directive makes sense only if`) })
		p.signal(syscall.SIGTERM)
		p.ended()
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	group, err := user.LookupGroupId(nobody.Gid)
	if err != nil {
		t.Fatal(err)
	}
	p := startProcessOf(t, "user nobody "+group.Name+";\n"+(*process)(nil).conf("server { listen ADDRESS; location / { root DIR; } }"))
	for _, dir := range []string{p.dir, filepath.Dir(p.dir)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"open": 0o644, "secret": 0o600} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	p.eventually("became another user", func() bool { // it accepts connections before
		status, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
		return err == nil && strings.Contains(string(status), "Uid:\t"+strings.Repeat(nobody.Uid+"\t", 3)+nobody.Uid+"\n")
	})
	if got := p.get("/secret"); !strings.Contains(got, "403 Forbidden") {
		t.Errorf("the secret file: %q", got)
	}
	p.signal(syscall.SIGUSR1) // logs are the user's, who can open them again
	p.eventually("reopened", func() bool { return strings.Contains(p.file("error.log"), "reopening logs") })
	if strings.Contains(p.file("error.log"), "[emerg]") {
		t.Errorf("the log has\n%s", p.file("error.log"))
	}
	p.signal(syscall.SIGTERM)
	if err := wiretest.Await(t, p.done, "end"); err != nil {
		t.Error(err)
	}
}

// -t finds out that the pid file cannot be written.
func TestPIDFileIsTested(t *testing.T) {
	p := &process{t: t, dir: t.TempDir(), address: wiretest.Free(t)}
	p.writeFile("error_log stderr; pid DIR/nosuch/nginx.pid; events {} http { server { listen ADDRESS; } }")
	status, _, stderr := run("-t", "-q", "-p", p.dir, "-c", "nginx.conf")
	if want := `open() "` + p.dir + `/nosuch/nginx.pid" failed (2: No such file or directory)`; status != 1 || !strings.Contains(stderr, want) {
		t.Errorf("status %d, printed %q, want %q", status, stderr, want)
	}
}
