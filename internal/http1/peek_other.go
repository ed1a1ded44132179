//go:build !linux

package http1

import "syscall"

// peeker works on Linux alone: elsewhere a connection that has ended is noticed when it is
// used, and the request is sent over another one.
type peeker struct{}

func (p *peeker) init(syscall.Conn) {}

func (p *peeker) reset() {}

func (p *peeker) idleAndClean() bool { return true }

const canMove = false

func (p *peeker) available() (int64, error) { return 0, nil }

func spliceAllowed() bool { return false }

func (p *peeker) awaitReadable() error { return nil }

func (p *peeker) sendAndAwait([]byte) (n int, late bool) { return 0, false }

func (p *peeker) lookAt() Readable { return Unknown }

func (*peeker) firstByte() byte { return 0 }
