package engine

import (
	"net"
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/examples/nginx/engine/vars"
)

// counts are of the process's connections and requests, whatever configuration serves them.
type counts struct {
	mu                          sync.Mutex
	conns                       map[net.Conn]*countedConn
	accepted, requests, writing int
}

// countedConn is a connection that is open, if only for a tunnel.
type countedConn struct {
	state http.ConnState
	asked bool // since it is active, a request has come to its handler
}

func newCounts() *counts { return &counts{conns: map[net.Conn]*countedConn{}} }

// track is an http.Server's ConnState.
func (c *counts) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew {
		c.accepted++
		c.conns[conn] = &countedConn{state: state}
		return
	}
	known := c.conns[conn]
	if known == nil {
		return
	}
	if state == http.StateClosed {
		if known.state == http.StateActive && !known.asked {
			c.requests++ // http.Server has refused it
		}
		delete(c.conns, conn)
		return
	}
	known.state = state
	if state == http.StateActive {
		known.asked = false
	}
}

// begin counts a request that has come to its handler.
func (c *counts) begin(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.writing++
	if known := c.conns[conn]; known != nil {
		known.asked = true
	}
}

// end is called when the handler returns. That is a tunnel's end too, of which http.Server
// tells nothing.
func (c *counts) end(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	if known := c.conns[conn]; known != nil && known.state == http.StateHijacked {
		delete(c.conns, conn)
	}
}

// Connections serves vars.Location.
func (x *exchange) Connections() vars.Connections { return x.engine.lasting.counts.connections() }

// connections counts those that are open. http.Server does not tell when a head begins: as long
// as it comes in its connection is still waiting.
func (c *counts) connections() vars.Connections {
	n, _, _ := c.all()
	return n
}

// all is everything at one moment.
func (c *counts) all() (n vars.Connections, accepted, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = vars.Connections{Active: len(c.conns), Writing: c.writing}
	for _, conn := range c.conns {
		switch {
		case conn.state == http.StateNew || conn.state == http.StateIdle:
			n.Waiting++
		case conn.state == http.StateActive && !conn.asked:
			n.Reading++
		}
	}
	return n, c.accepted, c.requests
}
