package wsupgrade

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// loops are the loops of a Forwarder. A loop starts with its first tunnel and ends when it has had
// none for idleLoopMillis.
type loops struct {
	system
	refused atomic.Bool // the system refuses splice(2)

	mu   sync.Mutex
	all  []*loop // nil entries do not run
	next int
}

// loop moves the bytes of many tunnels on one goroutine. An idle tunnel costs it two slots of a
// table, but no goroutine and no buffer.
//
// While its tunnels are idle the goroutine waits in epoll_wait and holds a thread there. To park it
// in the runtime's poller would cost each wake-up a second epoll_wait and the search of the
// scheduler.
type loop struct {
	owner   *loops
	at      int         // in owner.all
	tunnels int         // guarded by owner.mu
	fd      int         // of the epoll instance
	wakeFD  int         // an eventfd, written to by a tunnel that leaves by itself
	buf     []byte      // for all reads; the loop's alone
	pipe    *pipe       // for splicing; the loop's alone, nil until it is needed
	queue   []*pollHalf // directions with more to move than a visit allows, in FIFO order; the loop's alone

	mu    sync.RWMutex
	slots []*pollConn // by descriptor
}

// join counts a tunnel on a loop, which it returns. The tunnel must leave it.
func (s *loops) join() (*loop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make([]*loop, max(1, runtime.GOMAXPROCS(0)/2))
	}
	i := s.next % len(s.all)
	s.next++
	if s.all[i] == nil {
		l, err := newLoop(s)
		if err != nil {
			return nil, err
		}
		l.at = i
		s.all[i] = l
		go l.run()
	}
	s.all[i].tunnels++
	return s.all[i], nil
}

// leave removes a tunnel from the loop's count.
func (l *loop) leave() {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	l.tunnels--
}

// leaveUnserved is leave for a tunnel that the loop does not serve. The loop may wait without any
// tunnel's events, so it is woken; under the lock, since it may end and close wakeFD as soon as it
// is empty.
func (l *loop) leaveUnserved() {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	l.tunnels--
	l.owner.wake(l.wakeFD)
}

// empty reports whether the loop has no tunnel.
func (l *loop) empty() bool {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	return l.tunnels == 0
}

// tryRetire removes the loop from its owner if it is still empty. It returns false if it is not.
func (l *loop) tryRetire() bool {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	if l.tunnels > 0 {
		return false
	}
	l.owner.all[l.at] = nil
	return true
}

// idleLoopMillis is how long an empty loop waits for another tunnel, in milliseconds.
const idleLoopMillis = 100

// loopBuffer is how many bytes are read at a time.
const loopBuffer = 64 << 10

func newLoop(owner *loops) (*loop, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	l := &loop{owner: owner, fd: fd}
	if err := l.addWakeFD(); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return l, nil
}

// addWakeFD makes an eventfd that the epoll instance watches.
func (l *loop) addWakeFD() error {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return os.NewSyscallError("eventfd2", errno)
	}
	l.wakeFD = int(fd)
	event := syscall.EpollEvent{Events: (syscall.EPOLLIN | epollET) & 0xffffffff, Fd: int32(fd)}
	if err := l.owner.epollCtl(l.fd, syscall.EPOLL_CTL_ADD, l.wakeFD, &event); err != nil {
		_ = syscall.Close(l.wakeFD)
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

func (l *loop) close() {
	l.pipe.close()
	_ = syscall.Close(l.wakeFD)
	_ = syscall.Close(l.fd)
}

const (
	epollET       = 1 << 31
	watchedEvents = (syscall.EPOLLIN | syscall.EPOLLRDHUP | epollET) & 0xffffffff
	readable      = syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR
	writable      = syscall.EPOLLOUT | syscall.EPOLLHUP | syscall.EPOLLERR
)

// add watches c from now on. If it is readable already, there is an event at once.
func (l *loop) add(c *pollConn) error {
	l.mu.Lock()
	for len(l.slots) <= c.fd {
		l.slots = append(l.slots, make([]*pollConn, max(64, c.fd+1-len(l.slots)))...)
	}
	l.slots[c.fd] = c
	l.mu.Unlock()
	return c.watch(l.fd)
}

// remove removes c from the table, before its descriptor is closed and may be reused.
func (l *loop) remove(c *pollConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.fd < len(l.slots) && l.slots[c.fd] == c {
		l.slots[c.fd] = nil
	}
}

func (l *loop) conn(fd int32) *pollConn {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if int(fd) >= len(l.slots) {
		return nil
	}
	return l.slots[fd]
}

// run handles events until the loop has had no tunnel for idleLoopMillis.
func (l *loop) run() {
	defer l.close()
	lent := bufpool.GetFor(2 * loopBuffer)
	defer bufpool.Put(lent)
	l.buf = lent[:loopBuffer]
	var events [128]syscall.EpollEvent
	for {
		n, late := l.wait(events[:])
		if late && l.tryRetire() {
			return
		}
		l.round(events[:n])
	}
}

// round handles the events, then gives the first direction of the queue its visit. The next round
// looks for events first: a small message waits for one visit, however many directions are queued.
func (l *loop) round(events []syscall.EpollEvent) {
	next := l.dequeue()
	for _, e := range events {
		if c := l.conn(e.Fd); c != nil {
			c.pair.handle(l, c, e.Events)
		}
	}
	if next != nil {
		next.pair.resume(l, next)
	}
}

// enqueue puts h at the end of the queue for its next visit.
func (l *loop) enqueue(h *pollHalf) {
	h.queued = true
	l.queue = append(l.queue, h)
}

// dequeue returns the first direction of the queue, nil if there is none.
func (l *loop) dequeue() *pollHalf {
	if len(l.queue) == 0 {
		return nil
	}
	h := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return h
}

// wait returns the number of events. late reports whether the loop has been empty for
// idleLoopMillis.
func (l *loop) wait(events []syscall.EpollEvent) (n int, late bool) {
	if n := epollNow(l.fd, events); n > 0 || len(l.queue) > 0 {
		return n, false
	}
	timeout := -1
	if l.empty() {
		timeout = idleLoopMillis
	}
	n, err := syscall.EpollWait(l.fd, events, timeout) // fails only when interrupted
	return max(n, 0), n == 0 && err == nil && timeout > 0
}

// epollNow is an epoll_wait that does not wait, so the scheduler need not be informed.
func epollNow(fd int, events []syscall.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}
