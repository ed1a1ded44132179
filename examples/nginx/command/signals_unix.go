//go:build unix

package command

import (
	"os"
	"os/signal"
	"syscall"
)

// order is what a signal asks the server to do.
type order int

const (
	orderStop   order = iota // TERM, INT
	orderQuit                // QUIT
	orderReload              // HUP
	orderReopen              // USR1
)

var orders = map[os.Signal]order{
	syscall.SIGTERM: orderStop,
	syscall.SIGINT:  orderStop,
	syscall.SIGQUIT: orderQuit,
	syscall.SIGHUP:  orderReload,
	syscall.SIGUSR1: orderReopen,
}

// listenForSignals returns the signals that the server obeys, and what stops
// that.
func listenForSignals() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 8)
	for s := range orders {
		signal.Notify(signals, s)
	}
	return signals, func() { signal.Stop(signals) }
}

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
