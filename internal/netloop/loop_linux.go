package netloop

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Loop handles the events of its members on one goroutine.
//
// While its members are idle the goroutine waits in epoll_wait and holds a thread there. To park it
// in the runtime's poller would cost each wake-up a second epoll_wait and the search of the
// scheduler.
type Loop struct {
	set     *Set
	state   State  // the goroutine's alone
	queue   []Task // with more work than a visit allows, in FIFO order; the goroutine's alone
	started bool   // goroutines were started that have not had a processor yet; the goroutine's alone

	// mu is the innermost lock: it may be acquired while any other is held, and no function of a
	// Handler, a Task, a State or a Waiter is called with it held. Only Set.Control is.
	mu            sync.Mutex
	running       bool
	epoll, wakeFD int // the epoll instance and its eventfd, while running
	slots         []slot
	free          []uint32 // the slots without a member
	members       int
	generation    uint32 // of the last registration
	waiting       waiting
	asleep        bool
	wakeAt        time.Duration // on the clock of now: when a loop that is asleep wakes by itself
}

// Task is work that a loop continues after a look at its events.
type Task interface {
	// Resume does a bounded part of the work. If there is more it calls Enqueue again.
	Resume(l *Loop)
}

// State returns the loop's State, nil without Set.NewState. Only functions that the loop calls may
// call it.
func (l *Loop) State() State { return l.state }

// Enqueue puts t at the end of the loop's queue. Only functions that the loop calls may call it.
func (l *Loop) Enqueue(t Task) { l.queue = append(l.queue, t) }

// Queued returns the length of the loop's queue. Only functions that the loop calls may call it.
func (l *Loop) Queued() int { return len(l.queue) }

// IdleTime is how long a loop without members waits for another one before it ends. Tests that look for what loops leave
// shorten it before they make one.
var IdleTime = 100 * time.Millisecond

// forever is later than any time on the clock of now.
const forever = time.Duration(1<<63 - 1)

var processStart = time.Now()

// now returns the time of the loops' clock.
func now() time.Duration { return time.Since(processStart) }

// start makes the epoll instance and starts the goroutine. The caller holds mu.
func (l *Loop) start() error {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	l.epoll = fd
	if err := l.addWakeFD(); err != nil {
		_ = syscall.Close(fd)
		return err
	}
	l.running = true
	go l.run()
	return nil
}

// addWakeFD makes an eventfd that the epoll instance watches. Its events have the generation 0,
// which no member has.
func (l *Loop) addWakeFD() error {
	fd, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return os.NewSyscallError("eventfd2", errno)
	}
	l.wakeFD = int(fd)
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | EdgeTriggered}
	if err := l.set.control(l.epoll, syscall.EPOLL_CTL_ADD, l.wakeFD, &event); err != nil {
		_ = syscall.Close(l.wakeFD)
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// wake wakes a loop that is asleep. The caller holds mu: a loop that is not running has closed
// wakeFD, whose number may be another file's.
func (l *Loop) wake() {
	if !l.asleep {
		return
	}
	if l.set.wakeHook != nil {
		l.set.wakeHook(l)
	}
	_, _ = syscall.Write(l.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// run handles events until the loop has had no member for IdleTime.
func (l *Loop) run() {
	if l.set.NewState != nil {
		state := l.set.NewState(l)
		l.state = state
		defer state.Close() // not l.state's, which may be that of the goroutine after this one
	}
	var events [128]syscall.EpollEvent
	for {
		n, late := l.wait(events[:])
		if late && l.tryEnd() {
			return
		}
		l.round(events[:n])
		if l.set.AfterRound != nil {
			l.set.AfterRound(l)
		}
	}
}

// tryEnd closes the epoll instance if the loop still has no member. It returns false if it has one.
func (l *Loop) tryEnd() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members > 0 {
		return false
	}
	_ = syscall.Close(l.wakeFD)
	_ = syscall.Close(l.epoll)
	l.running, l.slots, l.free = false, nil, nil
	return true
}

// round handles the events and what has timed out, then resumes the first task of the queue. The
// next round looks for events first: a small message waits for one visit, however many tasks are
// queued.
func (l *Loop) round(events []syscall.EpollEvent) {
	next := l.dequeue()
	for i := range events {
		e := eventOf(&events[i])
		if h := l.handler(e); h != nil {
			h.Handle(l, e)
		}
	}
	l.expire()
	if next != nil {
		next.Resume(l)
	}
}

// dequeue returns the first task of the queue, nil if there is none.
func (l *Loop) dequeue() Task {
	if len(l.queue) == 0 {
		return nil
	}
	t := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return t
}

// wait returns the number of events. late reports whether the loop has had no member for IdleTime.
func (l *Loop) wait(events []syscall.EpollEvent) (n int, late bool) {
	if n := epollNow(l.epoll, events); n > 0 || len(l.queue) > 0 {
		return n, false
	}
	if l.started {
		// The goroutines are queued at this one's processor, which epoll_wait would keep until the
		// runtime's monitor takes it away: up to 10 ms later if there is no other processor.
		l.started = false
		runtime.Gosched()
	}
	millis, empty := l.sleep()
	n, err := syscall.EpollWait(l.epoll, events, millis) // fails only when interrupted
	l.awake()
	return max(n, 0), n == 0 && err == nil && empty
}

// sleep notes that the loop sleeps from now on, and returns for how many milliseconds. -1 means
// until there is an event. empty reports whether the loop has no member.
func (l *Loop) sleep() (millis int, empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	empty = l.members == 0
	l.asleep, l.wakeAt = true, l.waiting.next()
	if empty {
		l.wakeAt = now() + IdleTime
	}
	if l.wakeAt == forever {
		return -1, empty
	}
	left := l.wakeAt - now() + time.Millisecond - 1
	return int(min(max(left, 0)/time.Millisecond, 1<<30)), empty
}

func (l *Loop) awake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep = false
}

// epollNow is an epoll_wait that does not wait, so the scheduler need not be informed.
func epollNow(fd int, events []syscall.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}
