package server

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

const (
	// defaultAcceptQueue is how many connections wait for a place if AcceptQueue is 0.
	defaultAcceptQueue = 128
	// defaultAcceptTimeout bounds their wait if AcceptTimeout is 0.
	defaultAcceptTimeout = time.Second
	// roomAfter is how long a connection has waited for a request before it is closed for a newcomer. So clients that are
	// busy keep their connections in a flood.
	roomAfter = 250 * time.Millisecond
	// admitEvery is how often the queue is looked at as long as a connection waits.
	admitEvery = 20 * time.Millisecond
	// The bounds of a 503 (Service Unavailable). The connection is closed after overloadLinger, for a connection that is
	// closed with bytes unread is reset, and its client may lose the response.
	overloadWithin = 10 * time.Millisecond
	overloadLinger = time.Second
	maxLingering   = 1024
)

const overloaded = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Length: 19\r\nConnection: close\r\n\r\nService Unavailable"

// ConnStats counts connections of a Server.
type ConnStats struct {
	Open          int    // those that are served, without those that were hijacked
	Waiting       int    // those in the accept queue
	Overload      uint64 // how many found the accept queue full, or have waited there in vain
	OverloadAddr  uint64 // how many were refused by MaxConnsPerAddr
	ClosedForRoom uint64 // how many idle ones were closed for others
}

// ConnStats returns how many connections there are, and how many were refused since the server was made.
func (s *Server) ConnStats() ConnStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.admission.stats
	stats.Open, stats.Waiting = len(s.conns), len(s.admission.queue)
	return stats
}

// admission is what a Server needs to bound its connections. It is guarded by the Server's mu.
type admission struct {
	placed    int                // the connections that have one of MaxConns places
	byAddr    map[netip.Addr]int // those with and without a place
	queue     []*conn            // wait for a place, in FIFO order
	lingering []lingering        // in the order in which they are closed
	idle      []idleConn         // those that can be closed, the oldest first, as they were found last
	lookAt    time.Time          // when to look for them again
	ticking   bool               // tick is called after admitEvery
	stats     ConnStats
}

// lingering is a connection that has received a 503 (Service Unavailable).
type lingering struct {
	rwc   net.Conn
	until time.Time
}

// idleConn is a connection that has waited for a request since then.
type idleConn struct {
	c     *conn
	since int64
}

// changes are what is to be done without s.mu.
type changes struct {
	begin   []*conn    // have a place now
	close   []*conn    // have lost it
	refuse  []*conn    // do not get one
	release []net.Conn // have lingered
}

// admit gives a connection that was accepted a place, has it wait for one, or refuses it. It reports whether it has a place.
// The caller holds s.mu.
func (s *Server) admit(c *conn, addr netip.Addr) (placed bool, todo changes) {
	a := &s.admission
	if addr.IsValid() {
		if a.byAddr[addr] >= s.MaxConnsPerAddr {
			a.stats.OverloadAddr++
			return false, changes{refuse: []*conn{c}}
		}
		if a.byAddr == nil {
			a.byAddr = map[netip.Addr]int{}
		}
		a.byAddr[addr]++
		c.addr = addr
	}
	if s.MaxConns <= 0 || a.placed < s.MaxConns && len(a.queue) == 0 {
		s.place(c)
		return true, todo
	}
	a.queue = append(a.queue, c)
	s.fill(&todo)
	if len(a.queue) > cmp.Or(max(s.AcceptQueue, -1), defaultAcceptQueue) && len(a.queue) > 0 {
		s.refuseFrom(len(a.queue)-1, &todo)
	}
	if len(a.queue) > 0 {
		s.startTicking()
	}
	return false, todo
}

// place gives a connection a place.
func (s *Server) place(c *conn) {
	c.placed = true
	s.admission.placed++
	c.noteIdle()
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.conns[c] = struct{}{}
}

// release takes back what place and admit have given.
func (s *Server) release(c *conn) {
	a := &s.admission
	if c.placed {
		c.placed = false
		a.placed--
	}
	if !c.addr.IsValid() {
		return
	}
	if a.byAddr[c.addr]--; a.byAddr[c.addr] == 0 {
		delete(a.byAddr, c.addr)
	}
	c.addr = netip.Addr{}
}

// fill gives places to the connections that wait, also those of idle connections, as long as there are any.
func (s *Server) fill(todo *changes) {
	a := &s.admission
	for len(a.queue) > 0 {
		if a.placed >= s.MaxConns {
			c := s.oldestIdle()
			if c == nil {
				return
			}
			a.stats.ClosedForRoom++
			s.release(c)
			todo.close = append(todo.close, c)
		}
		c := a.queue[0]
		a.queue = slices.Delete(a.queue, 0, 1)
		s.place(c)
		todo.begin = append(todo.begin, c)
	}
}

// refuseFrom refuses the connections that wait behind the first i.
func (s *Server) refuseFrom(i int, todo *changes) {
	a := &s.admission
	for _, c := range a.queue[i:] {
		a.stats.Overload++
		s.release(c)
		todo.refuse = append(todo.refuse, c)
	}
	a.queue = slices.Delete(a.queue, i, len(a.queue))
}

// oldestIdle decides the end of the connection that has waited longest for a request, if it has for roomAfter, and returns
// it. If there is none it returns nil.
func (s *Server) oldestIdle() *conn {
	a := &s.admission
	if len(a.idle) == 0 {
		s.findIdle()
	}
	for i, e := range a.idle {
		// The state is read first: a connection that becomes idle meanwhile has noted that before.
		if e.c.isIdle() && e.c.since.Load() == e.since && e.c.placed && e.c.endIdle() {
			a.idle = a.idle[i+1:]
			return e.c
		}
	}
	a.idle = nil
	return nil
}

// findIdle looks for the connections that can be closed. That takes a while if there are many, so it is done only so often
// that it costs little.
func (s *Server) findIdle() {
	a, begun := &s.admission, time.Now()
	if begun.Before(a.lookAt) {
		return
	}
	oldest := idleClock() - int64(roomAfter)
	for c := range s.conns {
		if since := c.since.Load(); since <= oldest && c.placed && c.isIdle() {
			a.idle = append(a.idle, idleConn{c, since})
		}
	}
	slices.SortFunc(a.idle, func(x, y idleConn) int { return cmp.Compare(x.since, y.since) })
	now := time.Now()
	a.lookAt = now.Add(max(admitEvery/2, 20*now.Sub(begun)))
}

// startTicking has tick called.
func (s *Server) startTicking() {
	if !s.admission.ticking {
		s.admission.ticking = true
		time.AfterFunc(admitEvery, s.tick)
	}
}

// tick refuses the connections that have waited for too long, gives places to the others, and closes those that have
// lingered.
func (s *Server) tick() {
	var todo changes
	s.mu.Lock()
	a, now := &s.admission, time.Now()
	s.fill(&todo)
	waited := slices.IndexFunc(a.queue, func(c *conn) bool { return now.Sub(c.accepted) < s.acceptTimeout() })
	if waited < 0 {
		waited = len(a.queue)
	}
	waiting := slices.Clone(a.queue[waited:])
	a.queue = a.queue[:waited]
	s.refuseFrom(0, &todo)
	a.queue = append(a.queue, waiting...)
	for len(a.lingering) > 0 && !now.Before(a.lingering[0].until) {
		todo.release = append(todo.release, a.lingering[0].rwc)
		a.lingering = slices.Delete(a.lingering, 0, 1)
	}
	if a.ticking = false; len(a.queue)+len(a.lingering) > 0 {
		s.startTicking()
	} else {
		a.idle = nil // it holds connections
	}
	s.mu.Unlock()
	s.do(todo)
}

// do does what admission has decided.
func (s *Server) do(todo changes) {
	for _, c := range todo.close {
		c.close()
	}
	for _, c := range todo.begin {
		go s.begin(c)
	}
	for _, c := range todo.refuse {
		s.turnAway(c.rwc)
	}
	for _, rwc := range todo.release {
		_ = rwc.Close()
	}
}

// turnAway ends a connection that has no place.
func (s *Server) turnAway(rwc net.Conn) {
	half, plain := rwc.(interface{ CloseWrite() error })
	_, secure := rwc.(interface{ NetConn() net.Conn }) // a handshake costs more than a request
	if !s.OverloadResponse || secure || s.inShutdown.Load() {
		_ = rwc.Close()
		return
	}
	_ = rwc.SetWriteDeadline(time.Now().Add(overloadWithin))
	_, err := io.WriteString(rwc, overloaded)
	if err != nil || !plain || half.CloseWrite() != nil || !s.linger(rwc) {
		_ = rwc.Close()
	}
}

// linger closes rwc later. It reports false if there are too many such connections.
func (s *Server) linger(rwc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.admission
	if len(a.lingering) >= maxLingering || s.inShutdown.Load() {
		return false
	}
	a.lingering = append(a.lingering, lingering{rwc, time.Now().Add(overloadLinger)})
	s.startTicking()
	return true
}

// emptyQueue closes the connections that have no place.
func (s *Server) emptyQueue() {
	s.mu.Lock()
	var todo changes
	a := &s.admission
	s.refuseFrom(0, &todo)
	for _, l := range a.lingering {
		todo.release = append(todo.release, l.rwc)
	}
	a.lingering, a.idle = nil, nil
	s.mu.Unlock()
	s.do(todo)
}

// acceptTimeout returns the bound for the wait for a place.
func (s *Server) acceptTimeout() time.Duration { return either(s.AcceptTimeout, defaultAcceptTimeout) }

// addrOf returns what MaxConnsPerAddr counts a connection for: an IPv4 address, or the first of a /64 network of IPv6. It is
// not valid if there is no bound for it.
func (s *Server) addrOf(c *conn) (addr netip.Addr) {
	if s.MaxConnsPerAddr <= 0 {
		return addr
	}
	switch a := c.rwc.RemoteAddr().(type) {
	case nil:
	case *net.TCPAddr:
		addr = a.AddrPort().Addr()
	default:
		parsed, _ := netip.ParseAddrPort(a.String()) // of a PROXY protocol's perhaps; a unix socket has none
		addr = parsed.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() || s.TrustedAddr != nil && s.trusts(c, addr) {
		return netip.Addr{}
	}
	if addr.Is6() {
		addr = netip.PrefixFrom(addr, 64).Masked().Addr()
	}
	return addr
}

// trusts calls TrustedAddr.
func (s *Server) trusts(c *conn, addr netip.Addr) bool {
	defer c.recoverHook()
	return s.TrustedAddr(addr)
}

// clockStart is when idleClock began.
var clockStart = time.Now()

func idleClock() int64 { return int64(time.Since(clockStart)) }

// noteIdle notes that the connection waits for a request from now on.
func (c *conn) noteIdle() {
	if c.server.MaxConns > 0 {
		c.since.Store(idleClock())
	}
}

// isIdle reports whether the connection waits for a request.
func (c *conn) isIdle() bool { return c.is(http.StateIdle) || c.is(http.StateNew) }

// endIdle decides the end of a connection that waits for a request. It reports false if it does not.
func (c *conn) endIdle() bool {
	return c.state.CompareAndSwap(uint32(http.StateIdle), uint32(http.StateClosed)) ||
		c.state.CompareAndSwap(uint32(http.StateNew), uint32(http.StateClosed))
}
