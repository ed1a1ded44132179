package wsupgrade

import "syscall"

// system holds hooks of tests for the system calls of the loops that a sandbox (seccomp) or a limit
// may refuse. If nil, the system itself is called.
type system struct {
	spliceHook func(from, to, n int) (int, error)
	epollHook  func(epoll, operation, fd int, event *syscall.EpollEvent) error
	wakeHook   func(wakeFD int)
}

// splice moves the available bytes, at most n.
func (s *system) splice(from, to, n int) (int, error) {
	if s.spliceHook != nil {
		return s.spliceHook(from, to, n)
	}
	return spliceNow(from, to, n)
}

func (s *system) epollCtl(epoll, operation, fd int, event *syscall.EpollEvent) error {
	if s.epollHook != nil {
		return s.epollHook(epoll, operation, fd, event)
	}
	return syscall.EpollCtl(epoll, operation, fd, event)
}

// wake wakes the loop whose epoll instance watches wakeFD.
func (s *system) wake(wakeFD int) {
	if s.wakeHook != nil {
		s.wakeHook(wakeFD)
	}
	_, _ = syscall.Write(wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// refuses reports whether err is the system's refusal of a call. Such an error says nothing about
// the sockets, which can be read and written all the same.
func refuses(err error) bool {
	switch err {
	case syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EOPNOTSUPP:
		return true
	}
	return false
}
