package engine

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// counts are the process's counts of connections and requests, over all of its configurations.
// Every request changes them several times, so no operation
// here waits for another.
type counts struct {
	conns                       sync.Map // of net.Conn to *countedConn
	accepted, requests, writing atomic.Int64
}

// countedConn is an open connection, also one with nothing but a tunnel.
type countedConn struct {
	state     atomic.Int32 // an http.ConnState
	requested atomic.Bool  // a request has reached its handler since the connection became active
}

func (k *countedConn) current() http.ConnState { return http.ConnState(k.state.Load()) }

func newCounts() *counts { return &counts{} }

// known returns an open connection, nil if it is closed.
func (c *counts) known(conn net.Conn) *countedConn {
	k, _ := c.conns.Load(conn)
	known, _ := k.(*countedConn)
	return known
}

// track is the ConnState of a server. A connection becomes active with the first byte of a request.
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
	if state == http.StateHijacked && !known.requested.Load() {
		c.conns.Delete(conn) // by another handler of the program's server: its end is not known here
		return
	}
	if state == http.StateClosed {
		if known.current() == http.StateActive && !known.requested.Load() {
			c.requests.Add(1) // net/http's server has refused the request itself
		}
		c.conns.Delete(conn)
		return
	}
	if state == http.StateActive {
		known.requested.Store(false)
	}
	known.state.Store(int32(state))
}

// startRequest counts a request that has reached its handler.
func (c *counts) startRequest(conn net.Conn) {
	c.requests.Add(1)
	c.writing.Add(1)
	if known := c.known(conn); known != nil {
		known.requested.Store(true)
	}
}

// finishRequest is called when the handler returns. That is also the end of a tunnel, which
// servers do not report.
func (c *counts) finishRequest(conn net.Conn) {
	c.writing.Add(-1)
	if known := c.known(conn); known != nil && known.current() == http.StateHijacked {
		c.conns.Delete(conn)
	}
}

// connectionCounts are counts of open connections, in total and by state.
type connectionCounts struct{ active, reading, writing, waiting int }

// connections counts the open connections. In net/http's server a connection counts as waiting until its header is complete.
func (c *counts) connections() connectionCounts {
	n := connectionCounts{writing: int(c.writing.Load())}
	for _, k := range c.conns.Range {
		n.active++
		switch known := k.(*countedConn); known.current() {
		case http.StateNew, http.StateIdle:
			n.waiting++
		case http.StateActive:
			if !known.requested.Load() {
				n.reading++
			}
		}
	}
	return n
}
