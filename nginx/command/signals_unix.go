//go:build unix

package command

import (
	"os"
	"syscall"
)

var orders = map[os.Signal]order{
	syscall.SIGTERM:  {signal: "SIGTERM", doing: "exiting", do: stop, last: true},
	syscall.SIGINT:   {signal: "SIGINT", doing: "exiting", do: stop, last: true},
	syscall.SIGQUIT:  {signal: "SIGQUIT", doing: "shutting down", do: quit, last: true},
	syscall.SIGHUP:   {signal: "SIGHUP", doing: "reconfiguring", do: reload},
	syscall.SIGUSR1:  {signal: "SIGUSR1", doing: "reopening logs", do: reopen},
	syscall.SIGUSR2:  {signal: "SIGUSR2", doing: "changing binary", do: upgrade},
	syscall.SIGWINCH: {signal: "SIGWINCH", doing: "stop accepting connections", do: pause, daemon: true}, // a terminal sends it when its size changes
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
