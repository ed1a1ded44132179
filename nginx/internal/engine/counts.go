package engine

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// counts are of the process's connections and requests, whatever configuration serves them.
// Every request changes them several times, so that nothing here waits for anybody else.
type counts struct {
	conns                       sync.Map // of net.Conn to *countedConn
	accepted, requests, writing atomic.Int64
}

// countedConn is a connection that is open, if only for a tunnel.
type countedConn struct {
	state atomic.Int32 // an http.ConnState
	asked atomic.Bool  // since it is active, a request has come to its handler
}

func (k *countedConn) current() http.ConnState { return http.ConnState(k.state.Load()) }

func newCounts() *counts { return &counts{} }

// known is the connection, nil if it is not open any more.
func (c *counts) known(conn net.Conn) *countedConn {
	k, _ := c.conns.Load(conn)
	known, _ := k.(*countedConn)
	return known
}

// track is an http.Server's ConnState.
func (c *counts) track(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		c.accepted.Add(1)
		c.conns.Store(conn, &countedConn{}) // http.StateNew is 0
		return
	}
	known := c.known(conn)
	if known == nil {
		return
	}
	if state == http.StateClosed {
		if known.current() == http.StateActive && !known.asked.Load() {
			c.requests.Add(1) // http.Server has refused it
		}
		c.conns.Delete(conn)
		return
	}
	if state == http.StateActive {
		known.asked.Store(false)
	}
	known.state.Store(int32(state))
}

// begin counts a request that has come to its handler.
func (c *counts) begin(conn net.Conn) {
	c.requests.Add(1)
	c.writing.Add(1)
	if known := c.known(conn); known != nil {
		known.asked.Store(true)
	}
}

// end is called when the handler returns. That is a tunnel's end too, of which http.Server
// tells nothing.
func (c *counts) end(conn net.Conn) {
	c.writing.Add(-1)
	if known := c.known(conn); known != nil && known.current() == http.StateHijacked {
		c.conns.Delete(conn)
	}
}

// Connections serves vars.Location.
func (x *exchange) Connections() vars.Connections { return x.engine.lasting.counts.connections() }

// connections counts those that are open. http.Server does not tell when a head begins: as long
// as it comes in its connection is still waiting.
func (c *counts) connections() vars.Connections {
	n := vars.Connections{Writing: int(c.writing.Load())}
	for _, k := range c.conns.Range {
		n.Active++
		switch known := k.(*countedConn); known.current() {
		case http.StateNew, http.StateIdle:
			n.Waiting++
		case http.StateActive:
			if !known.asked.Load() {
				n.Reading++
			}
		}
	}
	return n
}
