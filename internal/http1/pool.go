package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Addr is where a target is. That it is a socket of this machine is said by a field: there is no
// host, of any name, that stands for one.
type Addr struct {
	Unix bool   // Name is a unix socket's path
	Name string // else host:port

	// Secure reports whether connections speak TLS, and TLS, if not nil, is the target's own configuration, of a type of
	// Options.Dial: connections are used again only for the same one.
	Secure bool
	TLS    any

	// Preface is what Options.Dial has sent at the beginning of the connection, which names its client: it carries requests of
	// the same preface only.
	Preface string
}

// Options configures a Pool.
type Options struct {
	// Addr returns where a request is sent. Do needs it.
	Addr func(r *http.Request) (Addr, error)
	// Dial makes a connection to a target, TLS included. Its errors are returned as they
	// are, and a panic of it is one of Get.
	Dial func(ctx context.Context, addr Addr) (net.Conn, error)
	// Panicked, if not nil, is called with a panic of Dial, and the stack, if the Get that dialled has returned, and with
	// one of a connection where no call can return it.
	Panicked func(value any, stack []byte)
	// MaxIdle bounds the idle connections for each target, regardless of their prefaces.
	MaxIdle int
	// MaxIdleTotal bounds those for all targets together: the one that was idle longest is closed. 0 is no bound.
	MaxIdleTotal int
	// IdleTimeout is how long they are kept.
	IdleTimeout time.Duration
	// MaxAge and MaxRequests end a connection with the exchange that it is too old for, or
	// that is its last; 0 is no bound.
	MaxAge      time.Duration
	MaxRequests int
	// WriteTimeout bounds each write, HeaderTimeout the wait for a response's header, both to a
	// quarter; 0 is no bound.
	WriteTimeout, HeaderTimeout time.Duration
	// MaxHeader bounds the header sections of a response, interim ones included, in bytes.
	MaxHeader int
}

// Pool keeps connections by targets. The one that was used last is used first, so that those
// which are not needed remain idle until they time out. No goroutine watches them: whether one has ended
// is looked at before it is used. A Pool is safe for concurrent use by multiple goroutines.
type Pool struct {
	o Options

	mu       sync.Mutex
	idle     map[Addr][]*Conn // by target, the one used last at the end
	prefaced idlePrefaced
	waiting  map[Addr][]*waiter // the exchanges that dial, in FIFO order
	count    int                // of idle connections
	sweep    *time.Timer        // nil: not running
	closed   bool               // no connection is kept until the next Get
}

// waiter is an exchange that dials and takes a connection that becomes idle meanwhile.
type waiter struct {
	got   chan *Conn // with room for one
	fresh bool       // only the one that is dialled for it will do

	panicked chan dialPanic // with room for one
	over     atomic.Bool    // there is a panic, or no exchange waits for one any more: the first of both counts
}

// dialPanic is a panic of Options.Dial.
type dialPanic struct {
	value any
	stack []byte
}

// NewPool returns a Pool.
func NewPool(o Options) *Pool {
	return &Pool{o: o, idle: map[Addr][]*Conn{}, prefaced: idlePrefaced{}, waiting: map[Addr][]*waiter{}}
}

// HeaderTimeout returns Options.HeaderTimeout.
func (p *Pool) HeaderTimeout() time.Duration { return p.o.HeaderTimeout }

// PoolOf returns the Pool of t; nil unless t is an *upstream.Transport whose targets speak HTTP/1.1. Package upstream
// sets it: its API, which is public, has no type of this package.
var PoolOf func(t http.RoundTripper) *Pool

// Get returns an idle connection that is still good, or dials. fresh returns one that is dialled for
// this call: the request has been sent over a kept one already, which the target had closed.
func (p *Pool) Get(ctx context.Context, addr Addr, fresh bool) (*Conn, error) {
	return p.get(ctx, addr, fresh, func() {})
}

// get is Get. dialling is called before a goroutine starts that holds ctx.
func (p *Pool) get(ctx context.Context, addr Addr, fresh bool, dialling func()) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for !fresh {
		c := p.pop(addr)
		if c == nil {
			break
		}
		if c.peek.idleAndClean() {
			p.startExchange(c)
			return c, nil
		}
		c.Close()
	}
	dialling()
	c, err := p.dial(ctx, addr, fresh)
	if err != nil {
		return nil, err
	}
	p.startExchange(c)
	return c, nil
}

// startExchange counts an exchange over c.
func (p *Pool) startExchange(c *Conn) {
	c.Reused = c.requests > 0
	c.requests++
	c.Last = p.o.MaxRequests > 0 && c.requests >= p.o.MaxRequests || p.o.MaxAge > 0 && time.Since(c.born) >= p.o.MaxAge
}

// pop takes the connection that was used last; nil if none was used within IdleTimeout: those
// below it have been idle for longer.
func (p *Pool) pop(addr Addr) *Conn {
	p.mu.Lock()
	p.closed = false
	list := p.idle[addr]
	if len(list) == 0 {
		p.mu.Unlock()
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	if time.Since(c.idle) < p.o.IdleTimeout {
		p.setIdle(addr, list[:len(list)-1])
		p.prefaced.remove(c)
		p.count--
		p.mu.Unlock()
		return c
	}
	p.count -= len(list)
	list[len(list)-1] = c
	p.prefaced.remove(list...)
	delete(p.idle, addr)
	p.mu.Unlock()
	c.Close()
	closeAll(list[:len(list)-1])
	return nil
}

func closeAll(list []*Conn) {
	for _, c := range list {
		c.Close()
	}
}

// put takes a connection back: for an exchange that dials, or to keep it idle.
func (p *Pool) put(c *Conn) {
	if c.Last {
		c.Close()
		return
	}
	p.mu.Lock()
	if p.handOff(c) {
		p.mu.Unlock()
		return
	}
	list := p.idle[c.addr]
	if p.closed || len(list) >= p.o.MaxIdle {
		p.mu.Unlock()
		c.Close()
		return
	}
	c.idle = time.Now()
	p.idle[c.addr] = append(list, c)
	p.count++
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.o.IdleTimeout, p.sweepIdle)
	}
	over := p.addPrefaced(c)
	if over == nil && p.o.MaxIdleTotal > 0 && p.count > p.o.MaxIdleTotal {
		over = p.takeOldest()
	}
	p.mu.Unlock()
	if over != nil {
		over.Close()
	}
}

// takeOldest takes out the connection that has been idle longest. The caller holds p.mu.
func (p *Pool) takeOldest() (oldest *Conn) {
	for _, list := range p.idle {
		if len(list) > 0 && (oldest == nil || list[0].idle.Before(oldest.idle)) {
			oldest = list[0]
		}
	}
	p.takeFirst(oldest.addr)
	p.prefaced.remove(oldest)
	return oldest
}

// takeFirst takes out the first idle connection of an address. The caller holds p.mu.
func (p *Pool) takeFirst(addr Addr) {
	p.setIdle(addr, slices.Delete(p.idle[addr], 0, 1))
	p.count--
}

// setIdle sets the idle connections of an address. One with a preface, of which there may be as many as clients, is forgotten
// when it has none; others are when they are swept. The caller holds p.mu.
func (p *Pool) setIdle(addr Addr, list []*Conn) {
	if len(list) == 0 && addr.Preface != "" {
		delete(p.idle, addr)
		return
	}
	p.idle[addr] = list
}

// addPrefaced counts c among the idle connections of its target, and takes out the one to close for it, if any. The caller
// holds p.mu.
func (p *Pool) addPrefaced(c *Conn) (over *Conn) {
	if c.addr.Preface == "" {
		return nil // MaxIdle bounds its list
	}
	if over = p.prefaced.add(c, p.o.MaxIdle); over != nil {
		p.takeFirst(over.addr) // where it is the first, too
	}
	return over
}

// handOff gives c to the first waiter that takes a kept connection of its target. One on which bytes have
// arrived since its exchange becomes idle instead, where Get finds it out. The caller holds p.mu.
func (p *Pool) handOff(c *Conn) bool {
	list := p.waiting[c.addr]
	i := slices.IndexFunc(list, func(w *waiter) bool { return !w.fresh })
	if i < 0 || !c.peek.idleAndClean() {
		return false
	}
	w := list[i]
	p.removeWaiter(c.addr, w)
	w.got <- c
	return true
}

// removeWaiter ends w's wait for a connection, and reports whether it had not ended before. The caller holds p.mu.
func (p *Pool) removeWaiter(addr Addr, w *waiter) bool {
	list := p.waiting[addr]
	i := slices.Index(list, w)
	switch {
	case i < 0:
		return false
	case len(list) == 1:
		delete(p.waiting, addr)
	default:
		p.waiting[addr] = slices.Delete(list, i, i+1)
	}
	return true
}

// sweepIdle closes the connections that have been idle for IdleTimeout.
func (p *Pool) sweepIdle() {
	var over []*Conn
	p.mu.Lock()
	now := time.Now()
	for addr, list := range p.idle {
		n := 0
		for n < len(list) && now.Sub(list[n].idle) >= p.o.IdleTimeout {
			n++
		}
		over = append(over, list[:n]...)
		p.prefaced.remove(list[:n]...)
		if p.count -= n; n == len(list) {
			delete(p.idle, addr)
			continue
		}
		p.idle[addr] = append([]*Conn(nil), list[n:]...)
	}
	p.sweep = nil
	if p.count > 0 {
		p.sweep = time.AfterFunc(p.o.IdleTimeout/2, p.sweepIdle)
	}
	p.mu.Unlock()
	closeAll(over)
}

// dial makes a connection, and takes one that becomes idle meanwhile if that is sooner and the caller
// needs no fresh one. The other one is kept then.
func (p *Pool) dial(ctx context.Context, addr Addr, fresh bool) (*Conn, error) {
	w := &waiter{got: make(chan *Conn, 1), fresh: fresh, panicked: make(chan dialPanic, 1)}
	failed, returned := make(chan error, 1), false
	p.mu.Lock()
	p.waiting[addr] = append(p.waiting[addr], w)
	p.mu.Unlock()
	// A dial outlives a request that is canceled: another one may want its connection.
	dialling := context.WithoutCancel(ctx)
	go func() {
		defer func() {
			switch v := recover(); {
			case v != nil: // here it would end the program
				p.dialPanicked(w, dialPanic{v, debug.Stack()})
			case !returned:
				failed <- errDialEnded
			}
		}()
		c, err := p.o.Dial(dialling, addr)
		if returned = true; err != nil {
			failed <- err
			return
		}
		p.dialled(w, newConn(p, addr, c))
	}()
	select {
	case c := <-w.got:
		p.waitNoMore(w)
		return c, nil
	case err := <-failed:
		if c := p.leave(addr, w); c != nil {
			return c, nil
		}
		return nil, err
	case dialled := <-w.panicked:
		if c := p.leave(addr, w); c != nil {
			c.Keep()
		}
		v := dialled.value
		panic(v)
	case <-ctx.Done():
		p.waitNoMore(w)
		if c := p.leave(addr, w); c != nil {
			c.Keep()
		}
		return nil, ctx.Err()
	}
}

// errDialEnded is the error of a Dial that has ended its goroutine (runtime.Goexit), as a test's FailNow does.
var errDialEnded = &net.OpError{Op: "dial", Err: errors.New("the function has ended its goroutine")}

// dialPanicked hands the panic of w's dial to w, if that still waits.
func (p *Pool) dialPanicked(w *waiter, v dialPanic) {
	switch {
	case w.over.CompareAndSwap(false, true):
		w.panicked <- v
	default:
		p.logPanic(v.value, v.stack)
	}
}

// logPanic calls Options.Panicked.
func (p *Pool) logPanic(value any, stack []byte) {
	if p.o.Panicked != nil {
		p.o.Panicked(value, stack)
	}
}

// waitNoMore ends the wait for a panic of w's dial: w has a connection, or has ended without one.
func (p *Pool) waitNoMore(w *waiter) {
	if w.over.CompareAndSwap(false, true) {
		return
	}
	v := <-w.panicked
	p.logPanic(v.value, v.stack)
}

// dialled gives c to the exchange that it was dialled for, if that still waits: were it given to
// another one, whose own dial fails then, no dial would be under way for w.
func (p *Pool) dialled(w *waiter, c *Conn) {
	p.mu.Lock()
	waits := p.removeWaiter(c.addr, w)
	if waits {
		w.got <- c
	}
	p.mu.Unlock()
	if !waits {
		p.put(c)
	}
}

// leave ends w's wait, and returns the connection that it was given all the same, if any.
func (p *Pool) leave(addr Addr, w *waiter) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removeWaiter(addr, w) {
		return nil
	}
	return <-w.got
}

// CloseIdle closes the idle connections, and those that become idle before the next Get.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	idle := p.idle
	p.closed = true // for those that are on their way
	p.idle, p.prefaced, p.count = map[Addr][]*Conn{}, idlePrefaced{}, 0
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
	p.mu.Unlock()
	for _, list := range idle {
		closeAll(list)
	}
}
