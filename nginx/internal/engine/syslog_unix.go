//go:build unix

package engine

import (
	"net"
	"syscall"
)

// sendNow sends a datagram if there is room for it, and never waits. full reports whether there
// was none. A deadline would not do: an expired one prevents the sending, and any other is waited
// for.
func sendNow(c net.Conn, b []byte) (full bool, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return false, err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		for {
			if _, sent = syscall.Write(int(fd), b); sent != syscall.EINTR {
				return true
			}
		}
	})
	if err != nil {
		return false, err
	}
	return sent == syscall.EAGAIN, sent
}
