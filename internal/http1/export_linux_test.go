package http1

import "syscall"

// SpliceAllowed reports what is made of splice(2)'s result for nothing.
func SpliceAllowed(result syscall.Errno) bool {
	return allowed(func(_, _, n int) syscall.Errno {
		if n != 0 {
			panic("not nothing")
		}
		return result
	})
}

// ForbidSplice makes of the process one that may not, until the returned function is called.
func ForbidSplice() (allow func()) {
	before := spliceAllowed
	spliceAllowed = func() bool { return false }
	return func() { spliceAllowed = before }
}
