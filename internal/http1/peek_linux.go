package http1

import (
	"syscall"
	"unsafe"
)

// peeker looks at what a connection has received, and takes nothing. Its functions are made once, so that a look allocates
// nothing.
type peeker struct {
	raw   syscall.RawConn
	look  func(fd uintptr)
	await func(fd uintptr) bool
	ready func(fd uintptr) bool
	send  func(fd uintptr) bool
	waits bool // ready has found nothing
	byte1 [1]byte
	n     int32 // how many bytes were received, as the kernel reports
	errno syscall.Errno

	unsent []byte // what send writes; nil behind that
}

func (p *peeker) init(c syscall.Conn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	if p.raw = raw; p.look == nil {
		p.makeFunctions()
	}
}

func (p *peeker) reset() { p.raw = nil }

func (p *peeker) makeFunctions() {
	p.look = p.peek
	p.await = func(fd uintptr) bool {
		if p.count(fd); p.n > 0 {
			return true
		}
		p.peek(fd) // its end, or nothing yet
		return p.errno != syscall.EAGAIN && p.errno != syscall.EINTR
	}
	p.send = func(fd uintptr) bool {
		if p.unsent == nil {
			return true
		}
		n, _ := syscall.Write(int(fd), p.unsent)
		p.n = int32(max(n, 0))
		whole := n == len(p.unsent)
		p.unsent = nil
		return !whole
	}
	p.ready = func(fd uintptr) bool {
		if p.waits { // no look behind the wait: a read follows anyway
			return true
		}
		p.peek(fd)
		p.waits = p.errno == syscall.EAGAIN || p.errno == syscall.EINTR
		return !p.waits
	}
}

// peek notes whether there is a byte.
func (p *peeker) peek(fd uintptr) {
	n, errno := peekByte(fd, &p.byte1)
	p.n, p.errno = int32(n), errno
}

// count notes how many bytes there are (FIONREAD, tcp(7)).
func (p *peeker) count(fd uintptr) {
	p.n = 0
	_, _, p.errno = syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&p.n)))
}

// idleAndClean reports whether the other end has sent nothing, and has not closed. What arrives between two
// exchanges belongs to none: taken for the next response, it would leave each later one off by one.
func (p *peeker) idleAndClean() bool {
	if p.raw == nil {
		return true
	}
	// Not Read, which fails where the last exchange's deadline is over.
	return p.raw.Control(p.look) == nil && (p.errno == syscall.EAGAIN || p.errno == syscall.EINTR)
}

// canMove reports whether the kernel reports what was received, and moves bytes between sockets.
const canMove = true

// available waits until something was received and returns how much, 0 at the end.
func (p *peeker) available() (int64, error) {
	if err := p.raw.Read(p.await); err != nil {
		return 0, err
	}
	if p.errno != 0 {
		return 0, p.errno
	}
	return int64(p.n), nil
}

// awaitReadable waits until something can be read, or the end.
func (p *peeker) awaitReadable() error {
	p.waits = false
	return p.raw.Read(p.ready)
}

// sendAndAwait writes what of b the socket takes at once, and if that is all of b, waits until something can be read, or the
// end, within the read deadline. The wait is prepared before the write, so that the read that finds nothing yet is spared.
// late is set if the deadline has passed. The error of a write is found by the next one.
func (p *peeker) sendAndAwait(b []byte) (n int, late bool) {
	p.unsent, p.n = b, 0
	err := p.raw.Read(p.send)
	p.unsent = nil
	return int(p.n), err != nil
}

// lookAt returns what there is to read.
func (p *peeker) lookAt() Readable {
	switch {
	case p.raw == nil || p.raw.Control(p.look) != nil:
		return Unknown
	case p.errno == syscall.EAGAIN || p.errno == syscall.EINTR:
		return Nothing
	case p.errno == 0 && p.n > 0:
		return Bytes
	}
	return Ended
}

// firstByte returns the byte that lookAt has found.
func (p *peeker) firstByte() byte { return p.byte1[0] }
