package simulate

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// sockets connects the parties of a history, which use a Network, to a gateway with real
// sockets: each connection of a party ends at a bridge, which is the gateway's peer on the
// loopback interface. The gateway has only *net.TCPConn, on both sides, and the bridges
// follow the plan: they cut segments, pause, half-close, stop reading, or reset and lose
// unsent data.
type sockets struct {
	plan    *Plan
	network *Network
	journal *Journal

	gateway *net.TCPListener            // where the gateway serves
	targets map[string]*net.TCPListener // by the address of the plan

	mu      sync.Mutex
	dials   map[string]int
	ends    []gatewayEnd
	bridges sync.WaitGroup
}

// gatewayEnd is a connection of the gateway.
type gatewayEnd struct {
	*net.TCPConn
	what string // what the connection is for
}

// newSockets listens in the place of the gateway and of each target.
func newSockets(plan *Plan, n *Network, j *Journal) (s *sockets, err error) {
	s = &sockets{plan: plan, network: n, journal: j, targets: map[string]*net.TCPListener{}, dials: map[string]int{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.gateway, err = loopback(); err != nil {
		return s, err
	}
	for i := range plan.Targets {
		l, err := loopback()
		if err != nil {
			return s, err
		}
		s.targets[plan.Targets[i].Addr] = l
	}
	return s, nil
}

// start builds bridges from then on.
func (s *sockets) start() {
	clients := s.network.Listen(gatewayAddr, 4)
	s.bridges.Go(func() { s.acceptClients(clients) })
	for addr, l := range s.targets {
		s.bridges.Go(func() { s.acceptGateway(l, addr) })
	}
}

// loopback listens on a port of the system's choice.
func loopback() (*net.TCPListener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

// acceptClients bridges the connections of clients to the gateway.
func (s *sockets) acceptClients(l *Listener) {
	for {
		inner, err := l.Accept()
		if err != nil {
			return
		}
		outer, err := net.DialTCP("tcp", nil, s.gateway.Addr().(*net.TCPAddr))
		if err != nil {
			inner.(*Conn).Reset()
			continue
		}
		s.bridges.Go(func() { s.bridge(inner.(*Conn), outer) })
	}
}

// acceptGateway bridges the connections of the gateway to a target.
func (s *sockets) acceptGateway(l *net.TCPListener, addr string) {
	for n := 0; ; n++ {
		outer, err := l.AcceptTCP()
		if err != nil {
			return
		}
		d, there, back := s.network.Links(addr, n)
		if d.Refuse && there.Window == 0 { // the target refuses dials meanwhile
			reset(outer)
			continue
		}
		s.bridges.Go(func() {
			inner, err := s.network.connect(context.Background(), "192.0.2.2", addr, Dialling{}, there, back)
			if err != nil {
				reset(outer)
				return
			}
			s.bridge(inner, outer)
		})
	}
}

// dialTarget connects the gateway to a target, as the plan says of the nth dial.
func (s *sockets) dialTarget(ctx context.Context, addr string) (net.Conn, error) {
	s.mu.Lock()
	n := s.dials[addr]
	s.dials[addr]++
	s.mu.Unlock()
	d, _, _ := s.network.Links(addr, n)
	if err := sleep(ctx, d.Delay); err != nil {
		return nil, dialError(err)
	}
	switch l := s.targets[addr]; {
	case d.Hang:
		s.journal.faults.Add("dial hangs", 1)
		<-ctx.Done()
		return nil, dialError(ctx.Err())
	case d.Refuse || l == nil:
		s.journal.faults.Add("dial refused", 1)
		return nil, refusedDial(ctx)
	default:
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		s.hold(c.(*net.TCPConn), dialledFor(ctx))
		return c, nil
	}
}

// dialledFor describes what the gateway dials a target for. net/http's transport may use the connection for another request.
func dialledFor(ctx context.Context) string {
	p := passageOf(ctx)
	switch {
	case p == nil:
		return "a check or a copy"
	case p.Upgrade:
		return fmt.Sprintf("the upgrade of #%d", p.Token)
	}
	return fmt.Sprintf("#%d", p.Token)
}

// refusedDial returns the error of a dial that the system refuses.
func refusedDial(ctx context.Context) error {
	l, err := loopback()
	if err != nil {
		return err
	}
	l.Close()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err == nil { // another history has got the port meanwhile
		reset(c.(*net.TCPConn))
		return errRefused
	}
	return err
}

// listenGateway returns what the gateway accepts connections from.
func (s *sockets) listenGateway() net.Listener { return holding{s.gateway, s} }

// listenSecure returns nil: plans for sockets have no client over TLS.
func (s *sockets) listenSecure() net.Listener { return nil }

// holding is a listener of which sockets know the connections.
type holding struct {
	*net.TCPListener
	sockets *sockets
}

// Accept returns the next connection.
func (h holding) Accept() (net.Conn, error) {
	c, err := h.AcceptTCP()
	if err != nil {
		return nil, err
	}
	h.sockets.hold(c, "a client")
	return c, nil
}

// hold records a connection of the gateway. In every other history the connections have
// small buffers, so that writes wait for readers.
func (s *sockets) hold(c *net.TCPConn, what string) {
	s.narrow(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, gatewayEnd{c, what})
}

// narrow gives a connection small buffers, in every other history.
func (s *sockets) narrow(c *net.TCPConn) {
	if s.plan.dice()%2 == 1 {
		_ = c.SetReadBuffer(64 << 10)
		_ = c.SetWriteBuffer(32 << 10)
	}
}

// portable reports whether the gateway has the portable engine for tunnels.
func (s *sockets) portable() bool { return s.plan.dice()/2%3 == 2 }

// plain reports whether handlers get net/http's own writers.
func (s *sockets) plain() bool { return s.plan.moves() }

// open returns the connections that the gateway has not closed.
func (s *sockets) open() (list []gatewayEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.ends {
		raw, err := c.SyscallConn()
		if err == nil && raw.Control(func(uintptr) {}) == nil {
			list = append(list, c)
		}
	}
	return list
}

// close ends everything and waits for it.
func (s *sockets) close() {
	if s.gateway != nil {
		s.gateway.Close()
	}
	for _, l := range s.targets {
		l.Close()
	}
	if l := s.network.listener(gatewayAddr); l != nil {
		l.Close()
	}
	s.network.resetAll()
	s.bridges.Wait()
}

// bridge copies bytes in both directions until both sides have ended. outer is a real
// socket, inner a party's connection with its faults.
func (s *sockets) bridge(inner *Conn, outer *net.TCPConn) {
	s.narrow(outer)
	var broken atomic.Bool
	fail := func() {
		if broken.CompareAndSwap(false, true) {
			inner.Reset()
			reset(outer)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pass(outer, inner, fail) })
	both.Go(func() { pass(inner, outer, fail) })
	both.Wait()
	inner.Close()
	outer.Close()
}

// halfCloser is either side of a bridge.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// pass copies the bytes of one side to the other, and its end.
func pass(to, from halfCloser, fail func()) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				fail()
				return
			}
		}
		switch {
		case err == io.EOF:
			if to.CloseWrite() != nil {
				fail()
			}
			return
		case err != nil:
			fail()
			return
		}
	}
}

// reset ends a connection with a reset: what was not sent is lost.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

// patience is how long a history waits in real time for an event that must come. On a
// machine that is not stuck no wait is as long.
const patience = time.Minute

// poll waits until done reports true, and reports whether it did.
func poll(done func() bool) bool {
	limit := time.Now().Add(patience)
	for pause := time.Millisecond; !done(); pause = min(pause*2, 50*time.Millisecond) {
		if time.Now().After(limit) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// stop checks that the gateway has closed its connections, and closes the rest. A connection
// of net/http's HTTP/2 transport may be open until its peer closes it: its idle timer does
// not start again if it fired while a request was about to begin that its context then
// ended, and CloseIdleConnections does not close it either.
func (s *sockets) stop() {
	if s.plan.Gateway.H2Targets {
		s.close()
	}
	if !poll(func() bool { return len(s.open()) == 0 }) {
		for _, c := range s.open() {
			s.journal.Break("left", "the gateway has not closed %v to %v, for %s; goroutines:\n%s", c.LocalAddr(), c.RemoteAddr(), c.what, everything())
		}
	}
	s.close()
}
