package command

import (
	"os"
	"os/signal"
)

// order is what the server does at a signal.
type order struct {
	signal string // its name
	doing  string // what nginx's log says that it does
	do     func(p *process, more <-chan os.Signal)
	last   bool // the server has ended afterwards
	daemon bool // a process with a terminal does not follow it
}

// listenForSignals returns the signals that the server, or a daemon, handles, and a function that stops their
// delivery.
func listenForSignals(daemon bool) (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 8)
	for s, order := range orders {
		if daemon || !order.daemon {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}
