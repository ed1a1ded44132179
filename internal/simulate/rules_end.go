package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
)

// probe: some time after the last fault the gateway serves as a new one would. All targets are healthy, and each gets
// requests as far as its group's options permit.
func (w *world) probe() {
	w.settle(w.quiet(5*time.Minute), nil)
	if w.sockets != nil {
		w.probeSockets()
		return
	}
	w.network.heal()
	if w.plan.Gateway.Strict {
		return // whether a connection on which requests have waited serves more depends on the program's transport
	}
	w.gateway.change(ChangePlan{Kind: SetAll})
	w.gateway.undrainAll()
	if w.plan.drains() {
		w.probeOnce(http.StatusServiceUnavailable, 0)
		return
	}
	time.Sleep(w.plan.recovery()) // a target that was added again may still count as unhealthy
	due := w.dueTargets()
	for n := range 100 {
		if !w.probeOnce(http.StatusOK, n) {
			return
		}
		if n > 0 && w.allProbed(due) {
			break
		}
		time.Sleep(time.Second)
	}
	if !w.allProbed(due) && w.plan.Gateway.Hedge == 0 { // a second target may take each turn of another one
		w.journal.Break("serves", "probes reach %v, want %v", w.journal.probed(), due)
	}
	w.settle(0, nil)
	for s := range w.gateway.population().Targets() {
		if !s.Healthy && !s.Target.Down {
			w.journal.Break("serves", "%s is still not healthy", s.Target.Addr)
		}
	}
	w.sampleGroup()
}

// probeSockets is probe in real time, which does not pass as fast as targets are brought back.
func (w *world) probeSockets() {
	w.gateway.change(ChangePlan{Kind: SetAll})
	w.gateway.undrainAll()
	for n := range 2 {
		status, err := w.probeStatus(n)
		due := func() bool {
			if w.plan.drains() {
				return status == http.StatusServiceUnavailable
			}
			return status == http.StatusOK || w.hasTargetFaults()
		}
		w.settle(0, func() bool { // failures that a busy machine has caused count for a while
			if !due() {
				status, err = w.probeStatus(n)
			}
			return due()
		})
		if !due() {
			w.journal.Break("serves", "a probe sees %d, %v, of a group that was drained: %v", status, err, w.plan.drains())
		}
	}
}

// hasTargetFaults reports whether connections to targets may still have faults to come.
func (w *world) hasTargetFaults() bool {
	for _, t := range w.plan.Targets {
		if len(t.Links.There)+len(t.Links.Back)+len(t.Dials) > 0 {
			return true
		}
	}
	return false
}

// probeOnce sends a probe, and reports whether the response has the expected status.
func (w *world) probeOnce(want, n int) bool {
	status, err := w.probeStatus(n)
	if status != want {
		w.journal.Break("serves", "a probe sees %d, %v, want %d", status, err, want)
	}
	return status == want
}

// probeStatus is a new client's request, and returns the status of the response.
func (w *world) probeStatus(n int) (int, error) {
	c := &client{world: w, plan: &ClientPlan{Links: LinksPlan{Manners: Link{Window: 64 << 10, Delay: time.Millisecond}}}, name: "probe", addr: "198.51.100.99"}
	conn := c.dial()
	if conn == nil {
		return 0, errors.New("no connection")
	}
	defer conn.Close()
	return c.probe(conn, n)
}

// probe sends a request that every target serves.
func (c *client) probe(conn duplex, n int) (int, error) {
	if _, err := fmt.Fprintf(conn, "GET /0/%d HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n", n); err != nil {
		return 0, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// dueTargets returns the targets that get requests of a client that sends one at a time: no backups, and with First,
// LeastConn and RandomTwo the first ones.
func (w *world) dueTargets() (due []string) {
	heaviest := 0
	for _, t := range w.gateway.targets(-1) {
		if t.Down || t.Backup || t.Draining {
			continue
		}
		weight := max(1, t.Weight)
		switch w.plan.Gateway.Balance {
		case balanceFirst:
			if len(due) == 0 {
				due = append(due, t.Addr)
			}
			continue
		case balanceLeast, balanceRandom:
			if weight < heaviest {
				continue
			}
			if weight > heaviest {
				due, heaviest = nil, weight
			}
		}
		due = append(due, t.Addr)
	}
	return due
}

// allProbed reports whether each of the targets has seen a probe.
func (w *world) allProbed(due []string) bool {
	probed := w.journal.probed()
	return !slices.ContainsFunc(due, func(addr string) bool { return !slices.Contains(probed, addr) })
}

// noteProbe notes that a target has seen a probe.
func (j *Journal) noteProbe(addr string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.probes == nil {
		j.probes = map[string]bool{}
	}
	j.probes[addr] = true
}

// probed returns the targets that have seen a probe.
func (j *Journal) probed() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(maps.Keys(j.probes))
}
