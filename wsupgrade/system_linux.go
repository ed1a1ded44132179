package wsupgrade

import "syscall"

// system holds the calls of the loops that a sandbox (seccomp) or a limit may refuse. nil
// means the system's own; tests put in others.
type system struct {
	spliceHook func(from, to, n int) (int, error)
	epollHook  func(epoll, operation, fd int, event *syscall.EpollEvent) error
	ringHook   func(bell int)
}

// splice moves what is there, at most n bytes.
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

// ring makes the bell's epoll instance wake its loop.
func (s *system) ring(bell int) {
	if s.ringHook != nil {
		s.ringHook(bell)
	}
	_, _ = syscall.Write(bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// refuses reports whether err is the system's refusal of a call, which says nothing about the
// sockets: they can be read and written all the same.
func refuses(err error) bool {
	switch err {
	case syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EOPNOTSUPP:
		return true
	}
	return false
}
