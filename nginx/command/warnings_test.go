//go:build unix

package command_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is not followed is reported at the start and at each reload, on standard error and in the
// error log, regardless of that log's level: an operator who has not run -t must not miss it.
func TestWarningsAtStartAndReload(t *testing.T) {
	p := startProcess(t, "server { listen ADDRESS; error_log server.log crit; ssl_conf_command a b; location / { return 200 ok; } }")
	warning := `"ssl_conf_command a b" is not followed: it is OpenSSL's in ` + filepath.Join(p.dir, "nginx.conf") + ":5"
	// The process may serve before it has written its log.
	p.eventually("warned", func() bool { return strings.Contains(p.file("error.log"), warning) })
	if got := strings.Count(p.file("error.log"), "[warn] "); got != 1 || !strings.Contains(p.file("error.log"), ": "+warning+"\n") {
		t.Errorf("the error log has\n%s", p.file("error.log"))
	}
	p.signal(syscall.SIGHUP)
	p.eventually("warned again", func() bool { return strings.Count(p.file("error.log"), warning) == 2 })
	p.signal(syscall.SIGQUIT)
	p.ended()
	if got := p.output.String(); got != strings.Repeat("nginx: [warn] "+warning+"\n", 2) {
		t.Errorf("standard error has %q", got)
	}
}

// A level that lets no warning through does not hide what is not followed, and if the error log
// is standard error it is reported once.
func TestWarningsWhereverErrorsGo(t *testing.T) {
	for log, want := range map[string]string{"error.log crit": "nginx: [warn] ", "stderr": "[warn] "} {
		p := startProcessOf(t, "error_log "+log+";\nevents {}\nhttp { server { listen ADDRESS; ssl_conf_command a b; return 200; } }\npid nginx.pid;\n")
		p.signal(syscall.SIGQUIT)
		p.ended()
		if got := p.output.String(); strings.Count(got, "\"ssl_conf_command a b\" is not followed") != 1 || !strings.Contains(got, want) {
			t.Errorf("error_log %s: standard error has %q", log, got)
		}
		if got := p.file("error.log"); strings.HasPrefix(log, "error.log") && strings.Count(got, "[warn] ") != 1 {
			t.Errorf("error_log %s: the log has %q", log, got)
		}
	}
}
