package simulate

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"
)

// runClient runs the ith client of the plan.
func (w *world) runClient(i int) {
	p := &w.plan.Clients[i]
	c := &client{world: w, plan: p, name: fmt.Sprintf("client%d", i), addr: clientAddr(i)}
	time.Sleep(p.Start + time.Duration(i)*100*time.Nanosecond)
	switch p.Kind {
	case HTTP2:
		c.runHTTP2()
	case Frames, WebSocket2:
		c.runFrames()
	case Malformed:
		for k := range p.Requests {
			w.sleep(p.Requests[k].Wait)
			c.malformed(&p.Requests[k])
		}
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

	leavesOpen bool // the connection
}

// dial connects to the gateway. It returns nil if that fails: a link may break off a TLS handshake.
func (c *client) dial() duplex {
	there, back := c.plan.Links.link(c.dials)
	c.dials++
	if c.plan.Kind.overHTTP2() {
		there.Window = endless
	}
	addr := gatewayAddr
	if c.plan.TLS {
		addr = secureAddr
	}
	conn, err := c.world.network.connect(context.Background(), c.addr, addr, Dialling{}, there, back)
	switch {
	case err != nil:
		c.world.journal.Break("dial", "%s: %v", c.name, err)
		return nil
	case c.plan.TLS:
		return c.secure(conn)
	}
	return conn
}

// secure runs a TLS handshake over conn.
func (c *client) secure(conn *Conn) duplex {
	protocol := "http/1.1"
	if c.plan.Kind.overHTTP2() {
		protocol = "h2"
	}
	over := tls.Client(conn, clientTLS(protocol))
	_ = conn.SetDeadline(time.Now().Add(c.world.longest))
	if err := over.Handshake(); err != nil {
		conn.Close()
		c.world.journal.Note(c.name, "handshake: %v", err)
		return nil
	}
	_ = conn.SetDeadline(time.Time{})
	if got := over.ConnectionState().NegotiatedProtocol; got != protocol {
		c.world.journal.Break("handshake", "%s: the gateway chooses %q, %q was offered", c.name, got, protocol)
	}
	return secured{over, conn}
}

// note adds a line about an exchange to the timeline.
func (c *client) note(e *ExchangePlan, format string, args ...any) {
	c.world.journal.Note(fmt.Sprintf("%s #%d", c.name, e.Token), format, args...)
}

// patience returns how long the client waits for the end of its exchange.
func (c *client) patience(e *ExchangePlan) time.Duration {
	if e.GiveUp > 0 {
		return e.GiveUp + offGrid
	}
	return c.world.longest
}
