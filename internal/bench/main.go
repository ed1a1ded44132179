// Command bench runs culvert and its peers on the same work, in turn, and
// prints what each of them does with it.
//
// The work is GETs of 1 KiB and 1 MiB and POSTs of 16 KiB and 1 MiB over 64 connections that
// are kept: as fast as the peer can (req/s, processor time and allocations a
// request), and at a fixed rate that is far from its limits (p50, p99). Each peer
// is a process of its own and starts anew for each round; rounds go through all
// peers (A B C, A B C, ...), and what is printed are medians over the rounds.
// Ratios are made within a round, so that a machine that slows down slows down
// both sides of them.
//
// With -tunnels it is WebSockets: what an idle one costs that has echoed 64 KiB once
// (memory, descriptors), the processor time of a handshake and of echoes over 200
// connections, and p99 at 10,000 messages a second.
//
// With -hold 20000 it is as many idle WebSockets, in as many gateways as the limit of
// descriptors requires: each echoes once, then all are drained.
//
// With -nginx it is examples/nginx beside nginx with two workers, each with the same
// configurations: processor time a request, and what rules, patterns, logs, TLS and gzip cost.
//
// With -table it is all that the fast path is held against, as ratios with the goals beside them: what package proxy does
// behind package server, and examples/nginx. It takes about a quarter of an hour.
//
// From the root of a clone: GOWORK=off go -C internal/bench run . -table
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// plan is how much is run.
type plan struct {
	duration    time.Duration // of a peer in a round
	rounds      int
	connections int
	idle        int // kept connections whose memory is measured
	rate        int // requests a second, of work that is paced
}

func main() {
	if serveIfAsked() {
		return
	}
	var p plan
	flag.DurationVar(&p.duration, "d", 2*time.Second, "how long a peer runs in each round")
	flag.IntVar(&p.rounds, "n", 5, "rounds")
	flag.IntVar(&p.connections, "c", 64, "connections")
	only := flag.String("peers", "", "run only the peers whose names contain one of these, separated by semicolons")
	kind := flag.String("work", "", "run only the work whose name contains this")
	tunnels := flag.Bool("tunnels", false, "compare WebSockets in place of requests")
	flag.IntVar(&p.idle, "idle", 3000, "idle tunnels, or kept connections")
	hold := flag.Int("hold", 0, "hold so many idle WebSockets in place of requests, let each echo once, drain")
	table := flag.Bool("table", false, "print the table of goals: what culvert and examples/nginx do beside others, as ratios")
	processors := flag.Int("p", 2, "processors of each peer that is a Go program")
	gateway := flag.Bool("nginx", false, "compare examples/nginx with nginx, each with the same configurations")
	flag.Parse()
	os.Setenv("GOMAXPROCS", strconv.Itoa(*processors)) // of the processes that this one starts
	if *table {
		if err := runGoals(os.Stdout, p); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *gateway {
		if err := runGateways(os.Stdout, p, *kind); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *hold > 0 {
		if err := holdTunnels(os.Stdout, *hold); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if *tunnels {
		plan := tunnelPlan{duration: p.duration, rounds: p.rounds, connections: 200, idle: p.idle, rate: 10000}
		if err := runTunnels(os.Stdout, plan, named(tunnelPeers(), *only)); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	for _, w := range works() {
		if !strings.Contains(w.name, *kind) {
			continue
		}
		if err := run(os.Stdout, p, w, named(peers(), *only)); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

// run measures the peers at one work and prints the table.
func run(out io.Writer, p plan, w work, all []peer) error {
	origin, err := startSelf(bareName, "")
	if err != nil {
		return err
	}
	defer origin.stop()
	fmt.Fprintf(out, "\n%s\n", w.name)
	var results []result
	for _, peer := range present(out, all) {
		results = append(results, result{peer: peer})
	}
	for range p.rounds {
		for i := range results {
			m, err := measure(results[i].peer, origin.address, p, w)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", w.name, results[i].peer.name, err)
			}
			results[i].rounds = append(results[i].rounds, m)
		}
	}
	return printTable(out, results)
}

// measurement is one peer in one round.
type measurement struct {
	perSecond float64 // requests
	cpu       float64 // microseconds of the peer's processor time a request
	allocs    float64 // a request; 0 where the peer does not report it
	p50, p99  float64 // microseconds at the work's rate; 0 without one
	memory    float64 // KiB of an idle connection, where that is measured
}

// measure starts a peer in front of target, loads it and stops it. The
// processor time and the allocations are those of the peer's whole life, warming
// up included, and so are the requests that they are divided by.
func measure(p peer, target string, how plan, w work) (m measurement, err error) {
	process, err := p.start(p.name, target)
	if err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			process.stop()
		}
	}()
	warm, err := load(process.address, w, how.connections, how.duration/4)
	if err != nil {
		return m, err
	}
	start := time.Now()
	n, err := load(process.address, w, how.connections, how.duration)
	took := time.Since(start)
	if err != nil {
		return m, err
	}
	var times []time.Duration
	if w.rate > 0 {
		if times, err = paced(process.address, w, how.connections, how.duration/2); err != nil {
			return m, err
		}
	}
	usage := process.stop()
	requests := float64(warm + n + int64(len(times)))
	return measurement{
		perSecond: float64(n) / took.Seconds(),
		cpu:       float64(usage.cpu.Microseconds()) / requests,
		allocs:    float64(usage.allocs) / requests,
		p50:       microseconds(times, 0.50),
		p99:       microseconds(times, 0.99),
	}, nil
}

// microseconds returns a quantile of sorted times.
func microseconds(times []time.Duration, quantile float64) float64 {
	if len(times) == 0 {
		return 0
	}
	return float64(times[int(float64(len(times)-1)*quantile)].Nanoseconds()) / 1000
}
