package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// goal is a line of the table of goals: culvert's number by a peer's, in the same round. Lines without a goal show where
// culvert stands beside others.
type goal struct {
	work, ours, against string
	what                string
	of                  func(m measurement) float64
	most                float64 // 0: none
}

// goals are those of the issues on the fast path and on package server.
func goals() []goal {
	const small, large, post, upload = "GET 1 KiB", "GET 1 MiB", "POST 16 KiB", "POST 1 MiB"
	const time = "CPU a request"
	return []goal{
		{small, ourName, "nginx", time, cpu, 1.2},
		{small, ourName, tunedName, time, cpu, 0.33},
		{small, onNetHTTPName, "nginx", time, cpu, 0},
		{small, onNetHTTPName, tunedName, time, cpu, 0},
		{small, ourName, fastName, time, cpu, 0},
		{small, ourName, "haproxy", time, cpu, 0},
		{small, ourName, relayName, time, cpu, 0},
		{memoryWork, memoryName, bareName, time, cpu, 0.45},
		{secureWork, ourName + secureSuffix, "nginx" + secureSuffix, time, cpu, 1.3},
		{secureWork, ourName + secureSuffix, tunedName + secureSuffix, time, cpu, 0},
		{post, ourName, "nginx", time, cpu, 1.3},
		{post, ourName, tunedName, time, cpu, 0},
		{upload, ourName, "nginx", time, cpu, 0.8},
		{upload, ourName, tunedName, time, cpu, 0},
		{large, ourName, "nginx", time, cpu, 0.65},
		{large, ourName, tunedName, time, cpu, 0},
		{large, ourName, relayName, time, cpu, 0},
		{productWork + "1 KiB", productName, "nginx", time, cpu, 1.5},
		{productWork + busyGateway, productName, "nginx", time, cpu, 1.6},
		{productWork + smallFile, productName, "nginx", time, cpu, 1.3},
		{productWork + largeFile, productName, "nginx", time, cpu, 1.0},
		{pacedWork, ourName, "nginx", "p99", p99, 2},
		{pacedWork, ourName, tunedName, "p99", p99, 0.3},
		{handshakeWork, loopsName, "nginx", "CPU a handshake", cpu, 1.0},
		{idleWork, ourName, bareName, "memory", memory, 0.06},
		{idleWork, ourName, "nginx", "memory", memory, 2.0},
	}
}

// trial is a kind of work, and who does it.
type trial struct {
	name   string
	origin string // its name among handlers
	peers  []peer
	// measure starts a peer in front of target, and stops it.
	measure func(p peer, target string, how plan) (measurement, error)
}

// runGoals prints the table of goals.
func runGoals(out io.Writer, p plan) error {
	all := goals()
	measured := map[string]map[string][]measurement{}
	var wanted plan // with the rate
	for _, t := range trials(all) {
		wanted = p
		if first := measured["GET 1 KiB"]; first != nil {
			wanted.rate = max(int(median(first[ourName], func(i int) float64 { return first[ourName][i].perSecond })/3), 100)
		}
		rounds, err := t.run(wanted)
		if err != nil {
			return err
		}
		measured[t.name] = rounds
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "work\twhat\t\tbeside\t\tmedian of ratios\tgoal, at most\t\n")
	for _, g := range all {
		g.print(table, measured[g.work][g.ours], measured[g.work][g.against])
	}
	ours := measured["GET 1 KiB"][ourName]
	fmt.Fprintf(table, "GET 1 KiB\tallocations\t%s %.1f\t\t\t\t2\t\n", ourName, median(ours, func(i int) float64 { return ours[i].allocs }))
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "CPU in µs, memory in KiB a connection, p99 in µs at %d requests a second; %d rounds of %v\n", wanted.rate, p.rounds, p.duration)
	return err
}

// print prints the line of g. A peer that can't run here has no rounds.
func (g goal) print(out io.Writer, ours, theirs []measurement) {
	most := ""
	if g.most > 0 {
		most = fmt.Sprintf("%.2f", g.most)
	}
	if theirs == nil {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\tnot installed\t\t%s\t\n", g.work, g.what, g.ours, g.against, most)
		return
	}
	of := func(rounds []measurement) float64 {
		return median(rounds, func(i int) float64 { return g.of(rounds[i]) })
	}
	ratio := median(ours, func(i int) float64 { return g.of(ours[i]) / g.of(theirs[i]) })
	fmt.Fprintf(out, "%s\t%s\t%s %.1f\t%s\t%.1f\t%.2f\t%s\t\n", g.work, g.what, g.ours, of(ours), g.against, of(theirs), ratio, most)
}

// run measures the peers in turn, round by round.
func (t trial) run(how plan) (map[string][]measurement, error) {
	origin, err := startSelf(t.origin, "")
	if err != nil {
		return nil, err
	}
	defer origin.stop()
	measured := map[string][]measurement{}
	for range how.rounds {
		for _, p := range t.peers {
			m, err := t.measure(p, origin.address, how)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.name, p.name, err)
			}
			measured[p.name] = append(measured[p.name], m)
		}
	}
	return measured, nil
}

// compared are those of all that the goals name for a work, and that can run here.
func compared(goals []goal, work string, all []peer) (list []peer) {
	for _, p := range all {
		if p.missing == "" && slices.ContainsFunc(goals, func(g goal) bool { return g.work == work && (g.ours == p.name || g.against == p.name) }) {
			list = append(list, p)
		}
	}
	return list
}

// trials are the kinds of work of goals, in their order.
func trials(goals []goal) (list []trial) {
	seen := map[string]bool{}
	for _, g := range goals {
		if !seen[g.work] {
			seen[g.work] = true
			t := newTrial(g.work)
			t.peers = compared(goals, g.work, t.peers)
			list = append(list, t)
		}
	}
	return list
}

// The kinds of work that works does not have.
const (
	memoryWork    = "1 KiB from memory"
	secureWork    = "GET 1 KiB over TLS"
	productWork   = "nginx.conf: "
	pacedWork     = "GET 1 KiB at a third of the rate"
	handshakeWork = "WebSocket handshake"
	idleWork      = "idle kept connection"
)

// newTrial returns a trial with all who may do it.
func newTrial(name string) trial {
	t := trial{name: name, origin: bareName, peers: peers()}
	small := works()[0]
	small.rate = 0
	switch {
	case name == memoryWork:
		t.measure = measureWork(small)
	case name == secureWork:
		small.secure = true
		t.peers, t.measure = securePeers(), measureWork(small)
	case name == pacedWork:
		t.measure = measurePaced(small)
	case name == handshakeWork:
		t.origin, t.peers, t.measure = echoName, tunnelPeers(), measureHandshakes
	case name == idleWork:
		t.measure = measureIdle
	case strings.HasPrefix(name, productWork):
		g := gatewayWorkNamed(strings.TrimPrefix(name, productWork))
		g.rate = 0
		t.peers, t.measure = gatewayPeers(g), measureWork(g.work)
	default:
		w := workNamed(name)
		w.rate = 0
		t.measure = measureWork(w)
	}
	return t
}

// measureWork returns measure for a work.
func measureWork(w work) func(p peer, target string, how plan) (measurement, error) {
	return func(p peer, target string, how plan) (measurement, error) { return measure(p, target, how, w) }
}
