package wsupgrade

import (
	"sync/atomic"
	"syscall"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/netloop"
)

// loops move the bytes of a Forwarder's tunnels between plain sockets. An idle tunnel costs a loop
// two places in a table, but no goroutine and no buffer.
type loops struct {
	netloop.Set
	refused    atomic.Bool                        // the system refuses splice(2)
	spliceHook func(from, to, n int) (int, error) // of tests: called in place of splice(2), if not nil
}

func newLoops() *loops {
	s := new(loops)
	s.NewState = func(l *netloop.Loop) netloop.State {
		lent := bufpool.GetFor(2 * loopBuffer)
		return &loop{Loop: l, owner: s, lent: lent, buf: lent[:loopBuffer]}
	}
	return s
}

// loop is one of the loops while it runs. Only functions that it calls use it.
type loop struct {
	*netloop.Loop
	owner *loops
	lent  []byte
	buf   []byte // for all reads; a part of lent
	pipe  *pipe  // for splicing; nil until it is needed
}

// Close releases the buffer and the pipe.
func (l *loop) Close() {
	bufpool.Put(l.lent)
	l.pipe.close()
}

// loopBuffer is how many bytes are read at a time.
const loopBuffer = 64 << 10

const (
	watchedEvents = syscall.EPOLLIN | syscall.EPOLLRDHUP | netloop.EdgeTriggered
	readable      = syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR
	writable      = syscall.EPOLLOUT | syscall.EPOLLHUP | syscall.EPOLLERR
)

// splice moves the available bytes, at most n.
func (s *loops) splice(from, to, n int) (int, error) {
	if s.spliceHook != nil {
		return s.spliceHook(from, to, n)
	}
	return spliceNow(from, to, n)
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
