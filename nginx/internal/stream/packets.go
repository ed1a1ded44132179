package stream

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxClients bounds the sessions of one socket. Datagrams of further clients are dropped.
	maxClients = 16 << 10
	// maxQueue bounds the datagrams that a session has not read yet, and maxQueued their bytes on one socket. Further ones are
	// dropped, as those are that the kernel has no room for.
	maxQueue  = 256
	maxQueued = 32 << 20
)

// Packets is a socket of UDP whose datagrams belong to sessions: those that one client sends to one local address. It outlives
// configurations. It is safe for concurrent use by multiple goroutines.
type Packets struct {
	conn   packetSocket
	queued atomic.Int64

	mu      sync.Mutex
	accept  func(*PacketConn)
	clients map[ends]*PacketConn     // those that get further datagrams
	open    map[*PacketConn]struct{} // all that are not closed
	reading bool
}

// ends identify a session.
type ends struct{ client, local netip.AddrPort }

// NewPackets returns Packets over a socket, which it owns.
func NewPackets(c *net.UDPConn) *Packets {
	return &Packets{conn: newPacketSocket(c), clients: map[ends]*PacketConn{}, open: map[*PacketConn]struct{}{}}
}

// Serve has accept called for each client that has no session, from now on. It is called on the goroutine that reads, with the
// client's first datagram waiting, and must not block. Sessions that have begun before end without further datagrams of their
// clients, which begin new ones. The first call begins to read.
func (p *Packets) Serve(accept func(*PacketConn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accept = accept
	clear(p.clients)
	if !p.reading {
		p.reading = true
		go p.read()
	}
}

// UDP returns the socket itself, which must not be read, written or closed.
func (p *Packets) UDP() *net.UDPConn { return p.conn.udp }

// Addr returns the address of the socket.
func (p *Packets) Addr() net.Addr { return p.conn.udp.LocalAddr() }

// Close closes the socket, and ends the sessions.
func (p *Packets) Close() error {
	err := p.conn.udp.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.cut()
	}
	clear(p.clients)
	return err
}

func (p *Packets) read() {
	buf := make([]byte, maxDatagram)
	for {
		n, e, err := p.conn.read(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil:
			p.deliver(e, buf[:n])
		}
	}
}

// deliver gives a datagram to its session, or to a new one.
func (p *Packets) deliver(e ends, b []byte) {
	p.mu.Lock()
	c := p.clients[e]
	fresh := c == nil
	if fresh {
		if len(p.open) >= maxClients || p.accept == nil {
			p.mu.Unlock()
			return
		}
		c = &PacketConn{packets: p, ends: e, in: make(chan []byte, maxQueue), done: make(chan struct{})}
		c.deadline = newDeadline()
		p.clients[e], p.open[c] = c, struct{}{}
	}
	accept := p.accept
	p.mu.Unlock()
	if fresh {
		accept(c)
	}
	c.put(b)
}

// PacketConn is the datagrams between one client and one local address. Each Read and Write is one datagram.
type PacketConn struct {
	packets *Packets
	ends    ends
	in      chan []byte
	done    chan struct{}
	once    sync.Once

	most     int // datagrams of this session; 0: no bound
	taken    int
	deadline *deadline
}

// Limit bounds the datagrams of the client that belong to the session; further ones begin another. It must be called during accept.
func (c *PacketConn) Limit(n int) { c.most = n }

// put queues a datagram. It is called by the reading goroutine alone.
func (c *PacketConn) put(b []byte) {
	if c.taken++; c.taken == c.most {
		c.forget()
	}
	if c.packets.queued.Add(int64(len(b))) > maxQueued {
		c.packets.queued.Add(int64(-len(b)))
		return
	}
	select {
	case c.in <- append([]byte(nil), b...):
	default:
		c.packets.queued.Add(int64(-len(b)))
	}
}

// forget lets further datagrams of the client begin another session.
func (c *PacketConn) forget() {
	c.packets.mu.Lock()
	defer c.packets.mu.Unlock()
	if c.packets.clients[c.ends] == c {
		delete(c.packets.clients, c.ends)
	}
}

// cut ends reads.
func (c *PacketConn) cut() { c.once.Do(func() { close(c.done) }) }

// Read implements net.Conn. A datagram that is longer than b is cut.
func (c *PacketConn) Read(b []byte) (int, error) {
	d, err := c.next()
	return copy(b, d), err
}

// next returns the next datagram.
func (c *PacketConn) next() ([]byte, error) {
	select {
	case d := <-c.in:
		c.packets.queued.Add(int64(-len(d)))
		return d, nil
	default:
	}
	select {
	case d := <-c.in:
		c.packets.queued.Add(int64(-len(d)))
		return d, nil
	case <-c.done:
		return nil, net.ErrClosed
	case <-c.deadline.passed():
		return nil, os.ErrDeadlineExceeded
	}
}

// Write implements net.Conn.
func (c *PacketConn) Write(b []byte) (int, error) { return c.packets.conn.write(b, c.ends) }

// Close ends the session. The socket is kept.
func (c *PacketConn) Close() error {
	c.forget()
	c.cut()
	c.packets.mu.Lock()
	delete(c.packets.open, c)
	c.packets.mu.Unlock()
	for {
		select {
		case d := <-c.in:
			c.packets.queued.Add(int64(-len(d)))
		default:
			return nil
		}
	}
}

// LocalAddr returns the address that the client has sent to.
func (c *PacketConn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.ends.local) }

// RemoteAddr returns the client's address.
func (c *PacketConn) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.ends.client) }

// SetDeadline implements net.Conn, for reads alone: writes do not wait.
func (c *PacketConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *PacketConn) SetReadDeadline(t time.Time) error {
	c.deadline.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn. It does nothing.
func (c *PacketConn) SetWriteDeadline(time.Time) error { return nil }
