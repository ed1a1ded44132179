package http1

import (
	"runtime"
	"syscall"
	"unsafe"
)

// sysRecvfrom is socketcall(2)'s number of recvfrom (linux/net.h).
const sysRecvfrom = 12

// peekByte looks for a byte on fd and takes nothing. This system multiplexes the calls of
// sockets: recvfrom's arguments are passed in memory. b is a part of a Conn, on the heap: it does
// not move.
func peekByte(fd uintptr, b *[1]byte) (n int, errno syscall.Errno) {
	args := [6]uintptr{fd, uintptr(unsafe.Pointer(b)), 1, syscall.MSG_PEEK | syscall.MSG_DONTWAIT, 0, 0}
	r, _, errno := syscall.RawSyscall(syscall.SYS_SOCKETCALL, sysRecvfrom, uintptr(unsafe.Pointer(&args)), 0)
	runtime.KeepAlive(b)
	return int(r), errno
}
