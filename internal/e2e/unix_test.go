package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnixSocketFileAsNginx: any user may use the file of a unix socket. It is left, in the way of the next
// server, if this one is killed, and removed when it ends.
func TestUnixSocketFileAsNginx(t *testing.T) {
	const conf = "http { access_log off; server { listen unix:{{DIR}}/s; listen {{LISTEN}}; return 200 ok; } }\n"
	for name, start := range map[string]func(*testing.T, string, map[string]string) *server{"nginx": startNginx, "culvert": startCulvert} {
		t.Run(name, func(t *testing.T) {
			s := start(t, conf, nil)
			socket := filepath.Join(s.dir, "s")
			if info, err := os.Stat(socket); err != nil || info.Mode() != fs.ModeSocket|0o666 {
				t.Errorf("the file: %v, %v", info, err)
			}
			s.end(t, syscall.SIGKILL)
			said := "bind() to unix:" + socket + " failed (98: Address already in use)"
			again := exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
			if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), said) {
				t.Errorf("beside a file that was left: %v\n%s\nwanted: %s", err, out, said)
			}
			if err := os.Remove(socket); err != nil {
				t.Fatal(err)
			}
			s = start(t, conf, nil)
			s.end(t, syscall.SIGQUIT)
			if _, err := os.Stat(filepath.Join(s.dir, "s")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file of a server that has ended: %v", err)
			}
		})
	}
}
