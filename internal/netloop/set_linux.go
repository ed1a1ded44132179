package netloop

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// Set is a set of loops: half as many as GOMAXPROCS, at least one. A loop runs while it has members,
// that is descriptors with a Handler or connections with a Waiter. The zero value is ready for use.
// A Set is safe for concurrent use by multiple goroutines, and must not be copied after first use.
type Set struct {
	// NewState, if not nil, returns the State of a loop that starts. It is called on the loop.
	NewState func(*Loop) State
	// Control, if not nil, is called in place of epoll_ctl(2), with a lock of the loop held. Tests
	// make the system refuse calls with it.
	Control func(epoll, operation, fd int, event *syscall.EpollEvent) error
	// AfterRound, if not nil, is called on a loop after each of its rounds. Tests observe loops
	// with it.
	AfterRound func(*Loop)

	wakeHook func(*Loop) // of this package's tests: called before a loop is woken
	once     sync.Once
	loops    []*Loop
	turn     atomic.Uint32
}

// State is what the users of a Set keep for each running loop, for example its buffers.
type State interface {
	// Close is called when the loop ends.
	Close()
}

// Next returns the loops in turn. A loop may get all descriptors of one task, so that it alone
// handles their events.
func (s *Set) Next() *Loop {
	s.once.Do(s.makeLoops)
	return s.loops[int(s.turn.Add(1)%uint32(len(s.loops)))]
}

func (s *Set) makeLoops() {
	s.loops = make([]*Loop, max(1, runtime.GOMAXPROCS(0)/2))
	for i := range s.loops {
		s.loops[i] = &Loop{set: s}
	}
}

func (s *Set) control(epoll, operation, fd int, event *syscall.EpollEvent) error {
	if s.Control != nil {
		return s.Control(epoll, operation, fd, event)
	}
	return syscall.EpollCtl(epoll, operation, fd, event)
}
