package command

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// oldSuffix is what the name of the pid file gets while two processes serve (NGX_OLDPID_EXT).
const oldSuffix = ".oldbin"

// writePIDFile writes this process's id; "" writes nothing.
func writePIDFile(name string) error {
	if name == "" {
		return nil
	}
	if err := os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return syserror.Open(err)
	}
	return nil
}

// openPIDFile finds out whether the pid file could be written, as -t does, and leaves it as it is; one that is not there is made.
func openPIDFile(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return syserror.Open(err)
	}
	return f.Close()
}

func removePIDFile(name string) {
	if name != "" {
		_ = os.Remove(name) // it may not exist
	}
}

// sendSignal implements -s: it sends the signal to the process of the configuration's pid file.
func sendSignal(o options, stderr io.Writer) int {
	fail := func(format string, args ...any) int {
		fmt.Fprintf(stderr, "nginx: [error] "+format+"\n", args...)
		return 1
	}
	s, err := nginx.New(o.load(stderr))
	if err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	name := s.PIDFile()
	s.Close()
	if name == "" {
		return fail("the configuration has no \"pid\" directive")
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return fail("%v", syserror.Open(err))
	}
	text := strings.TrimSpace(string(content))
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return fail("invalid PID number %q in %q", text, name)
	}
	if err := kill(pid, o.signal); err != nil {
		fmt.Fprintf(stderr, "nginx: [alert] kill(%d, %s) failed (%s)\n", pid, o.signal, conf.Errno(err))
		return 1
	}
	return 0
}
