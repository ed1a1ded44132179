package simulate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// counts is what histories consisted of. Those of a worker are sent as JSON.
type counts struct {
	begun, reported time.Time
	stopped         func() bool // nil: never

	Histories, Requests, Attempts, Broken int
	Twice, Differ                         int // run twice, and with another journal
	Faults, Clients, Filters, Options     Tally
	Effects                               Tally // what filters have done
	Manners                               Tally // of clients and targets, by kind
}

// over reports whether no further history is to be run.
func (c *counts) over() bool {
	return c.Broken > 0 && !*keep || c.stopped != nil && c.stopped()
}

// add counts a history, and reports whether it is the first one with a broken rule.
func (c *counts) add(p *Plan, j *Journal) (first bool) {
	first = c.Broken == 0 && len(j.broken) > 0
	c.Histories++
	c.Requests += len(j.outcomes)
	for _, s := range j.sights {
		c.Attempts += len(s)
	}
	c.Broken += len(j.broken)
	if j.unclear {
		c.Options.Add("the model of the group was lost", 1)
	}
	c.Faults.AddAll(&j.faults)
	c.Manners.AddAll(&j.manners)
	for i := range p.Clients {
		c.Clients.Add(p.Clients[i].Kind.String(), len(p.Clients[i].Requests))
		if p.Clients[i].TLS {
			c.Clients.Add("over TLS", len(p.Clients[i].Requests))
		}
	}
	c.Effects.AddAll(&j.effects)
	for _, f := range p.Gateway.Filters {
		c.Filters.Add(filterKinds[f.Kind].name, 1)
	}
	c.Options.AddFields(p.Gateway)
	c.Options.AddFields(p.Upstream)
	return first
}

// sum adds another's counts.
func (c *counts) sum(o *counts) {
	c.Histories += o.Histories
	c.Requests += o.Requests
	c.Attempts += o.Attempts
	c.Broken += o.Broken
	c.Twice += o.Twice
	c.Differ += o.Differ
	c.Faults.AddAll(&o.Faults)
	c.Manners.AddAll(&o.Manners)
	c.Clients.AddAll(&o.Clients)
	c.Filters.AddAll(&o.Filters)
	c.Options.AddAll(&o.Options)
	c.Effects.AddAll(&o.Effects)
}

// compare compares the journals of one seed's history that was run twice, but for the order of lines of one
// instant.
func (c *counts) compare(seed uint64, a, b *Journal) {
	c.Twice++
	x, y := strings.Split(a.Timeline(), "\n"), strings.Split(b.Timeline(), "\n")
	slices.Sort(x)
	slices.Sort(y)
	if slices.Equal(x, y) {
		return
	}
	c.Differ++
	for i := 0; testing.Verbose() && i < min(len(x), len(y)); i++ {
		if x[i] != y[i] {
			fmt.Printf("seed %d differs:\n%s\n%s\n", seed, x[i], y[i])
			break
		}
	}
}

// progressEvery is how often a long run prints its progress.
const progressEvery = 10 * time.Second

// progress prints the progress of a long run, now and then.
func (c *counts) progress() {
	if *worker {
		c.send(time.Second)
		return
	}
	if !testing.Verbose() || time.Since(c.begun) < progressEvery || time.Since(c.reported) < progressEvery {
		return
	}
	c.reported = time.Now()
	fmt.Fprintf(os.Stderr, "%6.0fs  %s\n", time.Since(c.begun).Seconds(), c.line())
}

// line is the last line of a run.
func (c *counts) line() string {
	s := fmt.Sprintf("%d histories, %d requests, %d attempts, %d faults, %d broken rules",
		c.Histories, c.Requests, c.Attempts, c.Faults.Sum(), c.Broken)
	if c.Twice > 0 {
		s += fmt.Sprintf(", %d of %d journals differ", c.Differ, c.Twice)
	}
	return s
}

// String is a table of what there was, and the last line.
func (c *counts) String() string {
	var b strings.Builder
	for _, part := range []struct {
		title string
		tally *Tally
	}{{"requests by client", &c.Clients}, {"manners of clients and targets", &c.Manners}, {"faults", &c.Faults}, {"histories with the filter", &c.Filters}, {"what filters have done", &c.Effects}, {"histories with the option", &c.Options}} {
		fmt.Fprintf(&b, "%s\n%s", part.title, part.tally.Table())
	}
	return b.String() + c.line() + "\n"
}
