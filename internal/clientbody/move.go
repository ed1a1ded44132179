package clientbody

import (
	"io"
	"net"
)

// Taker takes what the kernel moves.
type Taker interface {
	// Take takes n bytes that src has received.
	Take(src *net.TCPConn, n int64) (int64, error)
}

// Source is a server's own body, with nothing around it that has to see the bytes.
type Source interface {
	// Move waits until the client's socket has received something, and has to take it, most bytes at most. begin is called
	// before; if it reports false, nothing is moved. ended is set if the body has ended with them. The error is one of to.
	// Move returns 0 without an error where Read has to be called.
	Move(to Taker, most int64, begin func() bool) (n int64, ended bool, err error)
}

var _ Source = (*Body)(nil) // of a filter around another one

// Move implements Source.
func (b *Body) Move(to Taker, most int64, begin func() bool) (n int64, ended bool, err error) {
	source, ok := b.body.(Source)
	if !ok || b.enter() != nil {
		return 0, false, nil // Read fails as well
	}
	defer func() { b.leave(endOf(ended)) }()
	defer b.endMove()
	return source.Move(to, most, func() bool { return b.startMove() && begin() })
}

func endOf(ended bool) error {
	if ended {
		return io.EOF
	}
	return nil
}

// startMove takes the deadline away: what was received is moved at the target's pace. It reports false if the read has been
// broken off.
func (b *Body) startMove() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != reading || b.err != nil {
		return false
	}
	b.moving = true
	b.reads.Clear()
	return true
}

func (b *Body) endMove() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moving = false
}
