//go:build !386

package wsupgrade

import (
	"syscall"
	"unsafe"
)

// The calls of a loop do not wait, so they bypass the scheduler: to release and reacquire the
// thread's processor costs as much as to read a small frame. recvfrom and sendto take a shorter
// path to a socket than read and write.

// readNow reads the available bytes.
func readNow(fd int, p []byte) (int, error) { return socketCall(syscall.SYS_RECVFROM, fd, p, 0) }

// peekNow is readNow that leaves the bytes in the socket.
func peekNow(fd int, p []byte) (int, error) {
	return socketCall(syscall.SYS_RECVFROM, fd, p, syscall.MSG_PEEK)
}

// writeNow writes what the socket accepts.
func writeNow(fd int, p []byte) (int, error) {
	return socketCall(syscall.SYS_SENDTO, fd, p, syscall.MSG_NOSIGNAL)
}

func socketCall(call uintptr, fd int, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
