//go:build unix

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/culvert-go/culvert/nginx"
)

// readyEnv is the variable by which a daemon knows that it is one: the descriptor on which it says that it serves.
const readyEnv = "CULVERT_NGINX_READY"

// detach implements "daemon on": it runs the command line again in a session of its own, and returns the exit status: 0 when the
// new process serves and its pid file is written, as systemd's Type=forking expects.
func detach(args []string, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintf(stderr, "nginx: [emerg] daemon: %v\n", err)
		return 1
	}
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	ready, report, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer ready.Close()
	cmd := exec.Command(exe, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), readyEnv+"="+strconv.Itoa(firstInherited))
	cmd.ExtraFiles = []*os.File{report}
	cmd.Stderr = os.Stderr // its own descriptor, which the daemon gives up
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	report.Close()
	if err != nil {
		return fail(err)
	}
	if n, _ := ready.Read(make([]byte, 1)); n == 1 {
		_ = cmd.Process.Release()
		return 0
	}
	return exitStatus(cmd.Wait())
}

func exitStatus(err error) int {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1 // a signal, or an end without an error
}

// detached returns the file on which a daemon says that it serves, nil in another process.
func detached() *os.File {
	text, ok := os.LookupEnv(readyEnv)
	os.Unsetenv(readyEnv)
	fd, err := strconv.Atoi(text)
	if !ok || err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "ready")
}

// sayReady ends the process that waits for the daemon, and lets go of its standard error, which the error log replaces: what a
// shell or a supervisor reads from would never end otherwise.
func sayReady(to *os.File, s *nginx.Server) {
	_, _ = to.Write([]byte{'1'})
	to.Close()
	name := s.ErrorLog()
	if name == "stderr" {
		return
	}
	log, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		log, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if err == nil {
		_ = duplicate(int(log.Fd()), syscall.Stderr)
		log.Close()
	}
}
