package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// server is a running nginx, real or ours.
type server struct {
	address string // what {{LISTEN}} became
	dir     string
	cmd     *exec.Cmd
	output  *wiretest.Log
	ended   chan error
}

// preamble is what an http block alone needs around it.
const preamble = "events {}\n"

// startNginx starts Debian's nginx; startCulvert ours. Both take the same text, a whole
// file or the http block alone, in which {{LISTEN}} is the address to listen on, and serve from a directory of
// their own that holds files.
func startNginx(t *testing.T, conf string, files map[string]string) *server {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx"
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("Debian's nginx is needed (apt-get install nginx-light): %v", err)
	}
	return startServer(t, path, files, conf, "-g", "daemon off; master_process off;"+unlessNamed(conf, "user root;", "pid nginx.pid;"))
}

func startCulvert(t *testing.T, conf string, files map[string]string) *server {
	t.Helper()
	return startServer(t, culvertNginx, files, conf)
}

// unlessNamed returns the directives that the configuration does not have itself.
func unlessNamed(conf string, directives ...string) string {
	var missing string
	for _, d := range directives {
		if !strings.Contains(conf, strings.Fields(d)[0]+" ") {
			missing += " " + d
		}
	}
	return missing
}

func startServer(t *testing.T, program string, files map[string]string, conf string, args ...string) *server {
	t.Helper()
	s := &server{address: wiretest.Free(t), dir: t.TempDir(), output: &wiretest.Log{}}
	if !strings.Contains(conf, "events {") {
		conf = preamble + conf
	}
	conf = strings.NewReplacer("{{LISTEN}}", s.address, "{{DIR}}", s.dir).Replace(conf)
	writeFiles(t, s.dir, files)
	writeFiles(t, s.dir, map[string]string{"nginx.conf": conf})
	s.cmd = exec.Command(program, append(args, "-p", s.dir+"/", "-c", filepath.Join(s.dir, "nginx.conf"), "-e", filepath.Join(s.dir, "error.log"))...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	s.ended = ended
	go func() { ended <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("%s did not end on TERM", program)
			_ = s.cmd.Process.Kill()
		}
	})
	waitFor(t, program+" to listen", func() bool {
		select {
		case err := <-ended:
			ended <- err
			log, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
			t.Fatalf("%s ended: %v\n%s\n%s", program, err, s.output, log)
		default:
		}
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return s
}

// end sends the signal and waits for the end.
func (s *server) end(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		s.ended <- err
	case <-time.After(time.Minute):
		t.Fatalf("%s did not end on %v", s.cmd.Path, signal)
	}
}

// waitFor polls until done, for at most a minute.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644),
			os.Chtimes(path, time.Unix(1700000000, 0), time.Unix(1700000000, 0)))
		if err != nil {
			t.Fatal(err)
		}
	}
}
