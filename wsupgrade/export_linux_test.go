package wsupgrade

import (
	"syscall"
	"time"

	"github.com/culvert-go/culvert/internal/netloop"
)

// Each test waits for the end of its loops.
func init() { netloop.IdleTime = 10 * time.Millisecond }

// HookSplice makes the Forwarder's loops call fn in place of splice(2). real is the system's.
func (f *Forwarder) HookSplice(fn func(real func(from, to, n int) (int, error), from, to, n int) (int, error)) {
	if f.loops != nil {
		f.loops.spliceHook = func(from, to, n int) (int, error) { return fn(spliceNow, from, to, n) }
	}
}

// HookEpoll calls fn before each epoll_ctl(2) of the Forwarder's loops, which fails with its
// error.
func (f *Forwarder) HookEpoll(fn func(operation int) error) {
	if f.loops == nil {
		return
	}
	f.loops.Control = func(epoll, operation, fd int, event *syscall.EpollEvent) error {
		if err := fn(operation); err != nil {
			return err
		}
		return syscall.EpollCtl(epoll, operation, fd, event)
	}
}
