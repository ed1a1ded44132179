package simulate

import (
	"context"
	"fmt"
	"time"
)

// runClient does what the plan of the ith client says.
func (w *world) runClient(i int) {
	p := &w.plan.Clients[i]
	c := &client{world: w, plan: p, name: fmt.Sprintf("client%d", i), addr: fmt.Sprintf("198.51.100.%d", i+1)}
	time.Sleep(p.Start + time.Duration(i)*100*time.Nanosecond)
	switch p.Kind {
	case HTTP2:
		c.runHTTP2()
	case WebSocket:
		for k := range p.Requests {
			w.sleep(p.Requests[k].Wait)
			c.tunnel(&p.Requests[k])
		}
	default:
		c.runHTTP1()
	}
}

// client is one client while it runs.
type client struct {
	world *world
	plan  *ClientPlan
	name  string
	addr  string
	dials int
}

// dial connects to the gateway.
func (c *client) dial() (*Conn, error) {
	there, back := c.plan.Links.link(c.dials)
	c.dials++
	if c.plan.Kind == HTTP2 {
		there.Window = endless
	}
	return c.world.network.connect(context.Background(), c.addr, gatewayAddr, Dialling{}, there, back)
}

// note adds a line about an exchange to the timeline.
func (c *client) note(e *ExchangePlan, format string, args ...any) {
	c.world.journal.Note(fmt.Sprintf("%s #%d", c.name, e.Token), format, args...)
}

// patience returns how long the client waits for the end.
func (c *client) patience(e *ExchangePlan) time.Duration {
	if e.GiveUp > 0 {
		return e.GiveUp + offGrid
	}
	return c.world.longest
}
