package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// tunnelPlan is how much is run.
type tunnelPlan struct {
	duration    time.Duration // of each work
	rounds      int
	connections int
	idle        int // tunnels
	rate        int // messages a second at which times are taken
}

// tunnelMeasurement is one peer in one round.
type tunnelMeasurement struct {
	rss       float64 // KiB for each idle tunnel that has echoed 64 KiB once
	rest      float64 // the same when garbage was given back
	files     float64 // descriptors for each
	handshake float64 // microseconds of processor time
	small     float64 // the same for an echo of 128 bytes
	large     float64 // and of 64 KiB
	p99       float64 // microseconds at the rate, 128 bytes
}

// runTunnels measures the peers and prints the table.
func runTunnels(out io.Writer, p tunnelPlan, all []peer) error {
	origin, err := startSelf(echoName, "")
	if err != nil {
		return err
	}
	defer origin.stop()
	fmt.Fprintf(out, "\nWebSockets, %d connections, %d idle ones\n", p.connections, p.idle)
	var results []tunnelResult
	for _, peer := range present(out, all) {
		results = append(results, tunnelResult{peer: peer})
	}
	for range p.rounds {
		for i := range results {
			m, err := measureTunnels(results[i].peer, origin.address, p)
			if err != nil {
				return fmt.Errorf("%s: %w", results[i].peer.name, err)
			}
			results[i].rounds = append(results[i].rounds, m)
		}
	}
	return printTunnels(out, results)
}

// measureTunnels starts a peer, lets it do every work and stops it. The idle tunnels
// come first: later the peer's memory is what busy ones have left.
func measureTunnels(p peer, origin string, plan tunnelPlan) (m tunnelMeasurement, err error) {
	process, err := p.start(p.name, origin)
	if err != nil {
		return m, err
	}
	defer process.stop()
	if err = m.idle(process, plan.idle); err != nil {
		return m, err
	}
	if m.handshake, err = processorTime(process, func() (int64, error) { return handshakes(process, plan) }); err != nil {
		return m, err
	}
	for size, result := range map[int]*float64{128: &m.small, 64 << 10: &m.large} {
		if *result, err = processorTime(process, func() (int64, error) { return echoes(process, plan, size) }); err != nil {
			return m, err
		}
	}
	times, err := pacedEchoes(process, plan)
	m.p99 = microseconds(times, 0.99)
	return m, err
}

// processorTime returns what a unit of work costs the peer, in microseconds.
func processorTime(p *process, work func() (int64, error)) (float64, error) {
	before, err := p.usedSoFar()
	if err != nil {
		return 0, err
	}
	n, err := work()
	if err != nil {
		return 0, err
	}
	after, err := p.usedSoFar()
	return float64((after.cpu - before.cpu).Microseconds()) / float64(max(1, n)), err
}

// idle opens n tunnels, lets each echo 64 KiB once, and notes what one costs the peer. What
// the peer needs for the first ones, its code among it, does not count: they were opened and
// closed before.
func (m *tunnelMeasurement) idle(p *process, n int) error {
	close, err := openEchoed(p, min(n, 200))
	close()
	if err != nil {
		return err
	}
	before, err := p.usedWhenIdle()
	if err != nil {
		return err
	}
	close, err = openEchoed(p, n)
	defer close()
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // garbage collectors and pools come to rest
	busy, err := p.usedSoFar()
	if err != nil {
		return err
	}
	after, err := p.usedWhenIdle()
	each := func(now, then int64) float64 { return float64(now-then) / 1024 / float64(n) }
	m.rss, m.rest = each(busy.rss, before.rss), each(after.rss, before.rss)
	m.files = float64(after.files-before.files) / float64(n)
	return err
}

// openEchoed opens n tunnels and lets each echo 64 KiB once.
func openEchoed(p *process, n int) (closeAll func(), err error) {
	open := make([]*tunnelClient, n)
	message := make([]byte, 64<<10)
	err = each(16, func(worker int) error {
		for i := worker; i < n; i += 16 {
			c, err := dialTunnel(p)
			if err != nil {
				return err
			}
			open[i] = c
			if err := c.echo(message); err != nil {
				return err
			}
			c.back = nil // this process has to hold n of them, too
		}
		return nil
	})
	return func() {
		for _, c := range open {
			if c != nil {
				c.reset()
			}
		}
	}, err
}

// handshakes opens and closes tunnels, 16 at a time, and returns how many.
func handshakes(p *process, plan tunnelPlan) (int64, error) {
	var n atomic.Int64
	end := time.Now().Add(plan.duration)
	err := each(16, func(int) error {
		for time.Now().Before(end) {
			c, err := dialTunnel(p)
			if err != nil {
				return err
			}
			c.reset()
			n.Add(1)
		}
		return nil
	})
	return n.Load(), err
}

// echoes sends messages over the connections, each as soon as the one before is back,
// and returns how many.
func echoes(p *process, plan tunnelPlan, size int) (int64, error) {
	var n atomic.Int64
	var ready sync.WaitGroup
	ready.Add(plan.connections)
	err := each(plan.connections, func(int) error {
		c, err := dialTunnel(p)
		ready.Done()
		if err != nil {
			return err
		}
		defer c.conn.Close()
		ready.Wait()
		message := make([]byte, size)
		for end := time.Now().Add(plan.duration); time.Now().Before(end); {
			if err := c.echo(message); err != nil {
				return err
			}
			n.Add(1)
		}
		return nil
	})
	return n.Load(), err
}

// pacedEchoes sends messages of 128 bytes at the plan's rate and returns the times
// until they were back, in order.
func pacedEchoes(p *process, plan tunnelPlan) ([]time.Duration, error) {
	return atRate{plan.rate, plan.connections, plan.duration}.run(func() (func() error, func() error, error) {
		c, err := dialTunnel(p)
		if err != nil {
			return nil, nil, err
		}
		message := make([]byte, 128)
		return func() error { return c.echo(message) }, c.conn.Close, nil
	})
}

// tunnelClient is a WebSocket that speaks in bytes.
type tunnelClient struct {
	conn  net.Conn
	plain net.Conn // below TLS
	back  []byte
}

const tunnelHandshake = "GET / HTTP/1.1\r\nHost: bench.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

func dialTunnel(p *process) (*tunnelClient, error) {
	plain, err := net.Dial("tcp", p.address)
	if err != nil {
		return nil, err
	}
	conn := plain
	if p.secure {
		conn = tls.Client(plain, anyServer())
	}
	if _, err := io.WriteString(conn, tunnelHandshake); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 512)
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 101 ")) {
			return nil, fmt.Errorf("response %q", line)
		}
		if len(line) <= 2 {
			return &tunnelClient{conn: conn, plain: plain}, nil
		}
	}
}

// echo sends a binary frame with the message and reads it back.
func (c *tunnelClient) echo(message []byte) error {
	frame := append(binaryHead(len(message)), message...)
	if len(c.back) < len(frame) {
		c.back = make([]byte, len(frame))
	}
	if _, err := c.conn.Write(frame); err != nil {
		return err
	}
	_, err := io.ReadFull(c.conn, c.back[:len(frame)])
	return err
}

// binaryHead is the header of a masked frame whose key is 0.
func binaryHead(n int) []byte {
	switch {
	case n < 126:
		return []byte{0x82, 0x80 | byte(n), 0, 0, 0, 0}
	case n < 1<<16:
		return []byte{0x82, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}
	default:
		return []byte{0x82, 0x80 | 127, 0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 0, 0, 0, 0}
	}
}

// reset closes the connection so that its port is free at once.
func (c *tunnelClient) reset() {
	_ = c.plain.(*net.TCPConn).SetLinger(0)
	c.plain.Close()
}
