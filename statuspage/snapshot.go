package statuspage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// The most that is shown: of a group's targets, of tunnels, and of a text in bytes.
const (
	maxTargets = 1000
	maxTunnels = 200
	maxText    = 300
)

// Snapshot is what the page shows, and the JSON that "?json" responds with: names are those of the tags, times are in
// RFC 3339, and ages in seconds. It may be half of Options.Interval old.
type Snapshot struct {
	// Title is Options.Title.
	Title string `json:"title"`
	// Time is when the state was collected.
	Time time.Time `json:"time"`
	// Since is when the Page was made, from which totals count.
	Since time.Time `json:"since"`
	// InFlight is the number of requests and tunnels that run, and Requests counts those that have ended. They are 0
	// unless the Page is given to filters.Observe. An error is a response with a status from 500 on, or none.
	InFlight int     `json:"inFlight"`
	Requests Traffic `json:"requests"`
	// Groups are Options.Groups in their order, Tunnels those of Options.Tunnels.
	Groups  []Group `json:"groups"`
	Tunnels Tunnels `json:"tunnels"`
}

// Traffic counts requests.
type Traffic struct {
	// Total and Errors count since Snapshot.Since.
	Total  int64 `json:"total"`
	Errors int64 `json:"errors"`
	// Rate and ErrorRate are per second, as means of the last ten whole seconds.
	Rate      float64 `json:"rate"`
	ErrorRate float64 `json:"errorRate"`
}

// Group is an upstream.
type Group struct {
	// Name, Scheme, InFlight and Waiting are the Upstream's.
	Name     string `json:"name"`
	Scheme   string `json:"scheme"`
	InFlight int    `json:"inFlight"`
	Waiting  int    `json:"waiting"`
	// Requests counts the requests of the clients, regardless of their number of attempts.
	Requests Traffic `json:"requests"`
	// Targets are the first 1000 targets, More the number of the others.
	Targets []Target `json:"targets"`
	More    int      `json:"more,omitempty"`
	// Drainable reports whether the targets can be drained.
	Drainable bool `json:"drainable"`
}

// Target is a target of a group. Its fields are those of upstream.Status and upstream.Target, and:
type Target struct {
	// Addr is the target's address, by which the page drains it.
	Addr string `json:"addr"`
	// State is "up"; "probing" for a target that was ejected and gets single requests; "ejected"; "unhealthy";
	// "drained" or "down".
	State string `json:"state"`
	// Why is the reason of the state, in words; "" if there is nothing to say.
	Why      string `json:"why,omitempty"`
	Healthy  bool   `json:"healthy"`
	Weight   int    `json:"weight"`
	Backup   bool   `json:"backup,omitempty"`
	InFlight int    `json:"inFlight"`
	MaxConns int    `json:"maxConns,omitempty"`
	Fails    int    `json:"fails"`
	// CheckError is the failure of the last check.
	CheckError string `json:"checkError,omitempty"`
	// Requests counts the attempts at the target. An error is a status from 500 on, or a failure that is not the
	// client's.
	Requests Traffic `json:"requests"`
}

// Tunnels are the open tunnels.
type Tunnels struct {
	// Open is the number of all that are open.
	Open int `json:"open"`
	// Oldest are the 200 oldest ones.
	Oldest []Tunnel `json:"oldest"`
}

// Tunnel is a tunnel: see wsupgrade.Tunnel.
type Tunnel struct {
	// ID identifies the tunnel in its Registry. Age is the time since Start, in seconds. The others are the fields of
	// wsupgrade.Tunnel.
	ID          uint64    `json:"id"`
	Protocol    string    `json:"protocol"`
	Subprotocol string    `json:"subprotocol,omitempty"`
	Client      string    `json:"client"`
	Target      string    `json:"target"`
	Start       time.Time `json:"start"`
	Age         float64   `json:"age"`
	// Idle is the time since bytes were last received, in seconds.
	Idle float64 `json:"idle"`
	// ToTarget and ToClient are the numbers of bytes that were moved to each side.
	ToTarget int64 `json:"toTarget"`
	ToClient int64 `json:"toClient"`
}

// Snapshot returns the current state.
func (p *Page) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current().snapshot
}

// collect returns the state at a time.
func (p *Page) collect(at time.Time) Snapshot {
	c, unix := &p.counts, at.Unix()
	s := Snapshot{Title: p.o.Title, Time: at, Since: p.started, InFlight: int(c.running.Load()), Groups: []Group{}, Tunnels: p.tunnels(at)}
	for g := range p.o.Groups {
		s.Groups = append(s.Groups, groupOf(g))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Requests = c.all.traffic(unix)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Requests = c.of(subject{group: g.Name}, unix)
		for j := range g.Targets {
			g.Targets[j].Requests = c.of(subject{g.Name, g.Targets[j].Addr}, unix)
		}
	}
	return s
}

func groupOf(g Upstream) Group {
	_, drainable := g.(drainer)
	s := Group{Name: g.Name(), Scheme: g.Scheme(), InFlight: g.InFlight(), Waiting: g.Waiting(), Targets: []Target{}, Drainable: drainable}
	for t := range g.Targets() {
		if len(s.Targets) == maxTargets {
			s.More++
			continue
		}
		s.Targets = append(s.Targets, targetOf(t))
	}
	return s
}

func targetOf(s upstream.Status) Target {
	t := Target{Addr: s.Target.Addr, Healthy: s.Healthy, Weight: s.Target.Weight, Backup: s.Target.Backup,
		InFlight: s.InFlight, MaxConns: s.Target.MaxConns, Fails: s.Fails}
	if s.CheckErr != nil {
		t.CheckError = cut(s.CheckErr.Error())
	}
	t.State, t.Why = stateOf(s, t.CheckError)
	return t
}

// stateOf returns the state of a target and its reason. Several may apply: the first one keeps requests away even when
// the others end.
func stateOf(s upstream.Status, checkError string) (state, why string) {
	switch {
	case s.Drained && s.InFlight > 0:
		return "drained", "no further requests; " + number(s.InFlight, "is", "are") + " in flight"
	case s.Drained:
		return "drained", "no further requests; none is in flight"
	case s.Target.Down:
		return "down", "so it is configured"
	case s.Unhealthy:
		return "unhealthy", "its checks fail: " + cmp.Or(checkError, "the last one was good, more must be")
	case s.Ejected && !s.Healthy:
		if s.Fails == 0 {
			return "ejected", "failures have taken it out"
		}
		return "ejected", number(s.Fails, "failure", "failures") + " within " + s.Target.FailTimeout.String()
	case s.Ejected:
		return "probing", "it failed, and gets one request at a time until one succeeds"
	case checkError != "":
		return "up", "its last check failed: " + checkError
	case s.Fails > 0:
		return "up", fmt.Sprintf("%d of %s that take it out", s.Fails, number(s.Target.MaxFails, "failure", "failures"))
	}
	return "up", ""
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// cut bounds the length of a text.
func cut(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

func (p *Page) tunnels(at time.Time) Tunnels {
	s := Tunnels{Oldest: []Tunnel{}}
	if p.o.Tunnels == nil {
		return s
	}
	s.Open = p.o.Tunnels.Len()
	for t := range p.o.Tunnels.All() {
		if len(s.Oldest) == maxTunnels {
			break
		}
		toTarget, toClient := t.Bytes()
		s.Oldest = append(s.Oldest, Tunnel{
			ID: t.ID, Protocol: cut(t.Protocol), Subprotocol: cut(t.Subprotocol), Client: t.Client, Target: t.Target, Start: t.Start,
			Age: max(0, at.Sub(t.Start).Seconds()), Idle: max(0, at.Sub(t.LastActive()).Seconds()), ToTarget: toTarget, ToClient: toClient,
		})
	}
	return s
}
