package http1

import (
	"net"
	"syscall"
)

// Peeker looks at what the socket of a server's connection has received, and takes nothing. The zero Peeker knows nothing.
// Its methods must not be called concurrently.
type Peeker struct {
	peeker
	init bool
}

// Readable is what a Peeker has found.
type Readable int

// What there may be to read from a socket.
const (
	Unknown Readable = iota // the system does not report it
	Nothing
	Bytes
	Ended // the peer has closed its side, or the connection is broken
)

// Init makes p look at conn, if the system can. A connection of another type than the net package's may hold bytes that
// it has read already.
func (p *Peeker) Init(conn net.Conn) {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		if canMove {
			p.peeker.init(conn.(syscall.Conn))
			p.init = true
		}
	}
}

// Reset makes p know nothing, as the zero Peeker. Its memory is used again by Init.
func (p *Peeker) Reset() {
	p.peeker.reset()
	p.init = false
}

// Waits reports whether AwaitReadable waits: not on each system, and not for each connection.
func (p *Peeker) Waits() bool { return p.init }

// AwaitReadable waits until a byte can be read, or the end. The read deadline of the connection bounds it.
func (p *Peeker) AwaitReadable() error { return p.awaitReadable() }

// Look returns what there is to read.
func (p *Peeker) Look() Readable {
	if !p.init {
		return Unknown
	}
	return p.lookAt()
}

// First returns the next byte without taking it. ok is false if there is none, or the system does not report it.
func (p *Peeker) First() (b byte, ok bool) {
	if !p.init || p.lookAt() != Bytes {
		return 0, false
	}
	return p.firstByte(), true
}
