package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// goal is a line of the table that the fast path is held against: culvert's number by a peer's,
// in the same round.
type goal struct {
	work, against string
	what          string
	of            func(m measurement) float64
	wanted        float64
	atLeast       bool // else at most
}

// goals are those of the issue on the fast path.
func goals() []goal {
	return []goal{
		{"GET 1 KiB", tunedName, "CPU a request", cpu, 0.45, false},
		{"GET 1 KiB", bareName, "CPU a request", cpu, 1.6, false},
		{"GET 1 KiB", fastName, "req/s", perSecond, 1.5, true},
		{"GET 1 KiB", "nginx", "CPU a request", cpu, 2.0, false},
		{"GET 1 MiB", "nginx", "CPU a request", cpu, 0.65, false},
		{"POST 16 KiB", tunedName, "CPU a request", cpu, 0.45, false},
		{"GET 1 KiB at 10,000 req/s", tunedName, "p99", p99, 0.4, false},
	}
}

// goalWorks are the kinds of work of goals, with those that do each.
func goalWorks() map[string]work {
	all := map[string]work{}
	for _, w := range works() {
		all[w.name] = w
	}
	fast := all["GET 1 KiB"]
	fast.name, fast.rate = "GET 1 KiB at 10,000 req/s", 10000
	all[fast.name] = fast
	return all
}

// runGoals prints the table of goals, and what examples/nginx does beside nginx.
func runGoals(out io.Writer, p plan) error {
	origin, err := startSelf(bareName, "")
	if err != nil {
		return err
	}
	defer origin.stop()
	measured := map[string]map[string][]measurement{}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "work\tagainst\twhat\tmeasured\twanted\t\n")
	for _, g := range goals() {
		if measured[g.work] == nil {
			if measured[g.work], err = compare(p, origin.address, goalWorks()[g.work], peersOf(g.work)); err != nil {
				return err
			}
		}
		ours, theirs := measured[g.work]["culvert"], measured[g.work][g.against]
		if theirs == nil {
			fmt.Fprintf(t, "%s\t%s\t%s\tnot installed\t\t\n", g.work, g.against, g.what)
			continue
		}
		ratio := median(ours, func(i int) float64 { return g.of(ours[i]) / g.of(theirs[i]) })
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%s %.2f\t\n", g.work, g.against, g.what, ratio, map[bool]string{true: "at least", false: "at most"}[g.atLeast], g.wanted)
	}
	if rounds := measured["GET 1 KiB"]; rounds != nil {
		above := median(rounds["culvert"], func(i int) float64 { return rounds["culvert"][i].allocs - rounds[bareName][i].allocs })
		fmt.Fprintf(t, "GET 1 KiB\t%s\tallocations above its\t%.0f\tat most 8\t\n", bareName, above)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return runGateways(out, p, "")
}

// peersOf are culvert and who it is compared with at a work.
func peersOf(work string) []peer {
	wanted := map[string]bool{"culvert": true}
	for _, g := range goals() {
		if g.work == work {
			wanted[g.against] = true
		}
	}
	var list []peer
	for _, p := range peers() {
		if wanted[p.name] && p.missing == "" {
			list = append(list, p)
		}
	}
	return list
}

// compare measures the peers in turn, round by round.
func compare(p plan, origin string, w work, all []peer) (map[string][]measurement, error) {
	measured := map[string][]measurement{}
	for range p.rounds {
		for _, peer := range all {
			m, err := measure(peer, origin, p, w)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", w.name, peer.name, err)
			}
			measured[peer.name] = append(measured[peer.name], m)
		}
	}
	return measured, nil
}
