//go:build !386

package wsupgrade

import (
	"syscall"
	"unsafe"
)

// The calls of a loop do not wait, so the scheduler is not told of them: to leave a
// thread's processor and to take it again costs as much as to read a small frame.
// recvfrom and sendto have a shorter way to a socket than read and write.

// readNow reads what is there.
func readNow(fd int, p []byte) (int, error) { return socketCall(syscall.SYS_RECVFROM, fd, p, 0) }

// peekNow is readNow that leaves what is there.
func peekNow(fd int, p []byte) (int, error) {
	return socketCall(syscall.SYS_RECVFROM, fd, p, syscall.MSG_PEEK)
}

// writeNow writes what the socket takes.
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
