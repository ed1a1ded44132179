package main

import (
	"time"
)

// measurePaced returns a measure of the times that a work takes at the plan's rate.
func measurePaced(w work) func(p peer, target string, how plan) (measurement, error) {
	return func(p peer, target string, how plan) (m measurement, err error) {
		w.rate = how.rate
		process, err := p.start(p.name, target)
		if err != nil {
			return m, err
		}
		defer process.stop()
		if _, err = load(process.address, w, how.connections, how.duration/4); err != nil {
			return m, err
		}
		times, err := paced(process.address, w, how.connections, how.duration)
		return measurement{p50: microseconds(times, 0.50), p99: microseconds(times, 0.99)}, err
	}
}

// measureHandshakes measures the processor time of a WebSocket's handshake.
func measureHandshakes(p peer, target string, how plan) (m measurement, err error) {
	process, err := p.start(p.name, target)
	if err != nil {
		return m, err
	}
	defer process.stop()
	plan := tunnelPlan{duration: how.duration}
	m.cpu, err = processorTime(process, func() (int64, error) { return handshakes(process, plan) })
	return m, err
}

// measureIdle measures the memory of a connection that is kept after one request. What the first ones need, the peer's
// code among it, does not count: the first connections have been closed.
func measureIdle(p peer, target string, how plan) (m measurement, err error) {
	process, err := p.start(p.name, target)
	if err != nil {
		return m, err
	}
	defer process.stop()
	closeAll, err := keepConnections(process, min(how.idle, 200))
	closeAll()
	if err != nil {
		return m, err
	}
	before, err := process.usedWhenIdle()
	if err != nil {
		return m, err
	}
	closeAll, err = keepConnections(process, how.idle)
	defer closeAll()
	if err != nil {
		return m, err
	}
	time.Sleep(time.Second) // until a server takes them for idle
	after, err := process.usedWhenIdle()
	m.memory = float64(after.rss-before.rss) / 1024 / float64(how.idle)
	return m, err
}

// keepConnections opens n connections, which have one request each.
func keepConnections(p *process, n int) (closeAll func(), err error) {
	open := make([]*client, n)
	w := works()[0]
	err = each(16, func(worker int) error {
		for i := worker; i < n; i += 16 {
			c, err := newClient(p.address, w)
			if err != nil {
				return err
			}
			open[i] = c
			if err := c.exchange(); err != nil {
				return err
			}
			c.r = nil // this process has to hold n of them, too
		}
		return nil
	})
	return func() {
		for _, c := range open {
			if c != nil {
				c.conn.Close()
			}
		}
	}, err
}
