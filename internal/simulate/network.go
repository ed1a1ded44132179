package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Network connects dials to listeners, in memory. It must be used within one
// testing/synctest bubble, or outside of all bubbles.
type Network struct {
	// Links returns how the two directions of the nth connection to an address behave, and
	// the outcome of the dial.
	Links func(to string, n int) (Dialling, Link, Link)

	faults *Tally // that have happened

	mu        sync.Mutex
	listeners map[string]*Listener
	dialled   map[string]int
	pairs     int
	open      []*Conn
}

// Dialling is the outcome of a dial.
type Dialling struct {
	Delay  time.Duration
	Refuse bool
	Hang   bool // until its context ends
}

// NewNetwork returns a network without listeners, which counts the faults that happen.
func NewNetwork(faults *Tally) *Network {
	return &Network{faults: faults, listeners: map[string]*Listener{}, dialled: map[string]int{}}
}

// Listener accepts connections of a Network.
type Listener struct {
	addr   Addr
	net    *Network
	queue  chan *Conn // the backlog
	closed chan struct{}
	once   sync.Once
}

// Listen returns a listener of addr, with a backlog.
func (n *Network) Listen(addr string, backlog int) *Listener {
	l := &Listener{addr: Addr(addr), net: n, queue: make(chan *Conn, backlog), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[addr] = l
	return l
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections, and resets those that were not accepted.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		if l.net.listeners[string(l.addr)] == l {
			delete(l.net.listeners, string(l.addr))
		}
		l.net.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.queue:
				c.Reset()
			default:
				return
			}
		}
	})
	return nil
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr { return l.addr }

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// Dial connects from an address to a listener's, over the links that Links gives.
func (n *Network) Dial(ctx context.Context, from, to string) (*Conn, error) {
	n.mu.Lock()
	count := n.dialled[to]
	n.dialled[to]++
	n.mu.Unlock()
	dialling, there, back := n.Links(to, count)
	return n.connect(ctx, from, to, dialling, there, back)
}

// connect connects over the given links.
func (n *Network) connect(ctx context.Context, from, to string, d Dialling, there, back Link) (*Conn, error) {
	n.mu.Lock()
	n.pairs++
	pair := n.pairs
	n.mu.Unlock()
	offset := time.Duration(2*pair) % instant
	if err := sleep(ctx, there.Delay+back.Delay+d.Delay+offset); err != nil {
		return nil, dialError(err)
	}
	if d.Hang {
		n.faults.Add("dial hangs", 1)
		<-ctx.Done()
		return nil, dialError(ctx.Err())
	}
	n.mu.Lock()
	l := n.listeners[to]
	n.mu.Unlock()
	if l == nil || d.Refuse {
		n.faults.Add("dial refused", 1)
		return nil, errRefused
	}
	client, server := newPair(Addr(fmt.Sprintf("%s:%d", from, 10000+pair)), l.addr, there, back, offset, n.faults)
	select {
	case l.queue <- server:
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, dialError(ctx.Err())
	}
	n.mu.Lock()
	n.open = append(n.open, client, server)
	n.mu.Unlock()
	return client, nil
}

// endsAt returns the ends of connections at an address.
func (n *Network) endsAt(addr string) []*Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*Conn
	for _, c := range n.open {
		if c.local.String() == addr {
			list = append(list, c)
		}
	}
	return list
}

// dialError wraps an error in a *net.OpError, as package net does.
func dialError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = timeoutError{}
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}

// timeoutError is that of a dial.
type timeoutError struct{}

// Error implements net.Error, as do Timeout and Temporary.
func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// sleep sleeps until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listener returns the listener of an address, nil if there is none.
func (n *Network) listener(addr string) *Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listeners[addr]
}

// dialTarget connects the gateway to a target.
func (n *Network) dialTarget(ctx context.Context, addr string) (net.Conn, error) {
	c, err := n.Dial(ctx, "192.0.2.2", addr)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// plain reports false: handlers get writers that notice a use after their end.
func (n *Network) plain() bool { return false }

// portable reports true: the other engine needs descriptors.
func (n *Network) portable() bool { return true }

// listenGateway returns what the gateway accepts connections from.
func (n *Network) listenGateway() net.Listener { return n.Listen(gatewayAddr, 4) }

// listenSecure returns what it accepts connections over TLS from.
func (n *Network) listenSecure() net.Listener { return n.Listen(secureAddr, 4) }

// resetAll ends all connections.
func (n *Network) resetAll() {
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	for _, c := range open {
		c.Reset()
	}
}

// heal removes the faults that are still to come.
func (n *Network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.open {
		c.in.mu.Lock() // both directions'
		if c.in.link.Fault.At > c.in.written {
			c.in.link.Fault = Fault{}
		}
		c.in.mu.Unlock()
	}
}

// Unclosed returns the ends of connections that were not closed.
func (n *Network) Unclosed() []*Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*Conn
	for _, c := range n.open {
		c.in.mu.Lock()
		if !c.in.closed {
			list = append(list, c)
		}
		c.in.mu.Unlock()
	}
	return list
}
