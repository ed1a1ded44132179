//go:build unix

package command

import (
	"os"
	"syscall"
)

var orders = map[os.Signal]order{
	syscall.SIGTERM: {"SIGTERM", "exiting", stop, true},
	syscall.SIGINT:  {"SIGINT", "exiting", stop, true},
	syscall.SIGQUIT: {"SIGQUIT", "shutting down", quit, true},
	syscall.SIGHUP:  {"SIGHUP", "reconfiguring", reload, false},
	syscall.SIGUSR1: {"SIGUSR1", "reopening logs", reopen, false},
	syscall.SIGUSR2: {"SIGUSR2", "changing binary", upgrade, false},
}

// cuts reports whether the signal ends what a graceful quit waits for.
func cuts(s os.Signal) bool { return s == syscall.SIGTERM || s == syscall.SIGINT }

// kill sends the signal that -s names.
func kill(pid int, name string) error {
	s := map[string]syscall.Signal{
		"stop":   syscall.SIGTERM,
		"quit":   syscall.SIGQUIT,
		"reload": syscall.SIGHUP,
		"reopen": syscall.SIGUSR1,
	}[name]
	return syscall.Kill(pid, s)
}
