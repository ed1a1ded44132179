package backend

import (
	"slices"
	"time"
)

// kept takes an idle connection to addr that is still good; nil if there is none.
func (t *Transport) kept(addr string) *conn {
	for {
		t.mu.Lock()
		list := t.idle[addr]
		if len(list) == 0 {
			t.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		t.setIdle(addr, list[:len(list)-1])
		t.mu.Unlock()
		if c.wake() && !t.expired(c) {
			return c
		}
		c.nc.Close()
	}
}

// expired reports whether c was idle for too long.
func (t *Transport) expired(c *conn) bool {
	return t.o.IdleTimeout > 0 && time.Since(c.since) >= t.o.IdleTimeout
}

// keep makes c idle, unless it has had its time or its number of requests.
func (t *Transport) keep(c *conn) {
	switch {
	case t.o.MaxIdle <= 0, c.br.Buffered() > 0,
		t.o.MaxRequests > 0 && c.requests >= t.o.MaxRequests,
		t.o.MaxAge > 0 && time.Since(c.made) >= t.o.MaxAge:
		c.nc.Close()
		return
	}
	c.since = time.Now()
	c.woken.Store(false)
	deadline := time.Time{}
	if t.o.IdleTimeout > 0 {
		deadline = c.since.Add(t.o.IdleTimeout) // which ends the watch
	}
	_ = c.nc.SetReadDeadline(deadline)
	t.mu.Lock()
	list := t.idle[c.addr]
	var oldest *conn
	if len(list) >= t.o.MaxIdle {
		oldest, list = list[0], slices.Clone(list[1:])
	}
	t.setIdle(c.addr, append(list, c))
	go c.watch() // under the lock: who takes c waits for it
	t.mu.Unlock()
	if oldest != nil {
		oldest.nc.Close()
	}
}

// setIdle stores the idle connections of addr. The caller holds t.mu.
func (t *Transport) setIdle(addr string, list []*conn) {
	if len(list) == 0 {
		delete(t.idle, addr)
		return
	}
	t.idle[addr] = list
}

// remove closes c, which has ended while it was idle. An exchange that has taken it in the meantime closes it as well.
func (t *Transport) remove(c *conn) {
	t.mu.Lock()
	if i := slices.Index(t.idle[c.addr], c); i >= 0 {
		t.setIdle(c.addr, slices.Delete(slices.Clone(t.idle[c.addr]), i, i+1))
	}
	t.mu.Unlock()
	c.nc.Close()
}

// CloseIdleConnections closes the connections that are idle now.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle = map[string][]*conn{}
	t.mu.Unlock()
	for _, list := range idle {
		for _, c := range list {
			c.nc.Close()
		}
	}
}
