// Command bench runs culvert and its peers on the same work, in turn, and
// prints what each of them does with it.
//
// The work is a GET of 1 KiB over 64 connections that are kept. Each peer is a
// process of its own and starts anew for each round; rounds go through all peers
// (A B C, A B C, ...), and what is printed are medians over the rounds. Ratios
// are made within a round, so that a machine that slows down slows down both
// sides of them.
//
// From its folder: GOWORK=off go run . -d 2s
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// plan is how much is run.
type plan struct {
	duration    time.Duration // of a peer in a round
	rounds      int
	connections int
}

func main() {
	if serveIfAsked() {
		return
	}
	var p plan
	flag.DurationVar(&p.duration, "d", 2*time.Second, "how long a peer runs in each round")
	flag.IntVar(&p.rounds, "n", 5, "rounds")
	flag.IntVar(&p.connections, "c", 64, "connections")
	flag.Parse()
	if err := run(os.Stdout, p, peers()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the peers and prints the table.
func run(w io.Writer, p plan, all []peer) error {
	origin, err := startSelf(answerName, "")
	if err != nil {
		return err
	}
	defer origin.stop()
	var results []result
	for _, peer := range all {
		if peer.missing != "" {
			fmt.Fprintf(w, "%s is left out: %s\n", peer.name, peer.missing)
			continue
		}
		results = append(results, result{peer: peer})
	}
	for range p.rounds {
		for i := range results {
			m, err := measure(results[i].peer, origin.address, p)
			if err != nil {
				return fmt.Errorf("%s: %w", results[i].peer.name, err)
			}
			results[i].rounds = append(results[i].rounds, m)
		}
	}
	return printTable(w, results)
}

// measurement is one peer in one round.
type measurement struct {
	perSecond float64 // requests
	cpu       float64 // microseconds of the peer's processor time a request
}

// measure starts a peer in front of target, loads it and stops it. The
// processor time is that of the peer's whole life, warming up included, and so
// are the requests that it is divided by.
func measure(p peer, target string, how plan) (measurement, error) {
	process, err := p.start(p.name, target)
	if err != nil {
		return measurement{}, err
	}
	warm, err := load(process.address, how.connections, how.duration/4)
	if err != nil {
		process.stop()
		return measurement{}, err
	}
	start := time.Now()
	n, err := load(process.address, how.connections, how.duration)
	took := time.Since(start)
	cpu := process.stop()
	if err != nil {
		return measurement{}, err
	}
	return measurement{
		perSecond: float64(n) / took.Seconds(),
		cpu:       float64(cpu.Microseconds()) / float64(warm+n),
	}, nil
}
