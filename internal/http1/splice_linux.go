package http1

import (
	"sync"
	"syscall"
)

// spliceAllowed reports whether this process may call splice(2). A sandbox (seccomp) may refuse it
// with EPERM or ENOSYS, and net.TCPConn.ReadFrom then fails where it could copy: of the refusals it
// knows EINVAL alone.
var spliceAllowed = sync.OnceValue(func() bool { return allowed(splice) })

// allowed tries splice on nothing: the kernel looks at neither descriptor where the length is 0.
func allowed(splice func(from, to, n int) syscall.Errno) bool {
	switch splice(-1, -1, 0) {
	case syscall.EPERM, syscall.EACCES, syscall.ENOSYS:
		return false
	}
	return true
}

func splice(from, to, n int) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), 0)
	return errno
}
