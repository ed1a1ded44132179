//go:build !386

package http1

import (
	"syscall"
	"unsafe"
)

// peekByte looks for a byte on fd and takes nothing. RawSyscall: it never blocks, so the
// scheduler need not know.
func peekByte(fd uintptr, b *[1]byte) (n int, errno syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(b)), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return int(r), errno
}
