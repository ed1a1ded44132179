//go:build unix

package nginx

import (
	"os"
	"syscall"
)

// copyOf returns a copy of a listener's descriptor. (Fd of the File that net.TCPListener.File returns makes the socket blocking,
// which is one for all copies: an Accept would not end with its listener then, and take one more connection.)
func copyOf(l descriptor) (*os.File, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	err = raw.Control(func(original uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, failed = syscall.Dup(int(original)); failed == nil {
			syscall.CloseOnExec(fd)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, os.NewSyscallError("dup", failed)
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}
