package simulate

import (
	"errors"
	"sync"
	"syscall"
	"time"
)

// kernelSockets are three sockets of the kernel: on the first nothing has arrived, on the second a byte has, and the third
// has ended. They are made once, for system calls that look at a connection of the Network.
var kernelSockets = sync.OnceValues(func() (fds [3]int, err error) {
	for i := range fds {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return fds, err
		}
		fds[i] = pair[0]
		switch i {
		case 1:
			_, err = syscall.Write(pair[1], []byte{0})
		case 2:
			err = syscall.Close(pair[1])
		}
		if err != nil {
			return fds, err
		}
	}
	return fds, nil
})

// SyscallConn lets the gateway look at arrived bytes, as it does on a socket.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return look{s.Conn}, nil }

// look is the syscall.RawConn that SyscallConn returns.
type look struct{ c *Conn }

// Control calls f with a socket in the state of the connection's.
func (l look) Control(f func(fd uintptr)) error {
	fds, err := kernelSockets()
	if err != nil {
		return err
	}
	f(uintptr(fds[l.c.in.state()]))
	return nil
}

var errNoIO = errors.New("reads and writes go through the connection")

// Read returns an error: the descriptor is not the connection's.
func (l look) Read(func(fd uintptr) bool) error { return errNoIO }

// Write is like Read.
func (l look) Write(func(fd uintptr) bool) error { return errNoIO }

// state returns 0 if nothing has arrived, 1 if bytes have, 2 at the end.
func (h *half) state() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.arrive(now)
	switch {
	case h.closed, h.reset:
		return 2
	case h.arrived > 0:
		return 1
	case h.finArrived(now):
		return 2
	}
	return 0
}
