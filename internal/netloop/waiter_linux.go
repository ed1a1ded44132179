package netloop

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// Waiter waits until a connection is readable. Meanwhile the connection has no goroutine and no
// buffer, and the Waiter with its place in the loop takes about 120 bytes.
//
// The owner of a connection prepares one Waiter for it with Init, and calls Wait whenever the
// connection is idle: all bytes that were read from it have been used, and nothing reads from it
// meanwhile. Bytes that are in the socket already end the wait at once.
//
// If the owner closes the connection it calls Stop as well, before or after that. A wait for a
// connection that was closed ends by Stop or its timeout only.
//
// Wait and Stop are safe for concurrent use by multiple goroutines. Before Init, or if that has
// returned an error, Wait returns [errors.ErrUnsupported] and Stop false.
type Waiter struct {
	loop  *Loop
	raw   syscall.RawConn
	woken func(Reason)

	// guarded by loop.mu
	at         Registration  // the zero value: there is no wait
	timeout    time.Duration // 0: no limit
	deadline   time.Duration // on the clock of now
	prev, next *Waiter       // in the list of timeout
}

// waitMask selects the events of a Waiter: the first one ends its wait. The descriptor remains
// registered with the runtime's poller, which is another epoll instance.
const waitMask = syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT

// errWaiting is the error of a Wait during a wait.
var errWaiting = errors.New("netloop: the connection is waited for already")

// Init prepares w for conn, which must be a [*net.TCPConn] or a [*net.UnixConn], with nothing around
// it. For others and on systems without epoll(7) the error is [errors.ErrUnsupported]. Init is
// called once, before the other methods.
//
// Each wait that is not stopped calls woken once, on a goroutine of its own. The connection is the
// function's then, which may call Wait again.
func (w *Waiter) Init(s *Set, conn net.Conn, woken func(Reason)) (err error) {
	switch c := conn.(type) {
	case *net.TCPConn:
		w.raw, err = c.SyscallConn()
	case *net.UnixConn:
		w.raw, err = c.SyscallConn()
	default:
		err = errors.ErrUnsupported
	}
	if err == nil {
		w.loop, w.woken = s.Next(), woken
	}
	return err
}

// Wait begins a wait and returns. It ends with the first of: the connection is readable, it has
// waited for timeout, Stop is called. If timeout is 0 or negative there is no limit.
//
// A program should use few different timeouts: those with the same one are found quickly.
//
// If Wait returns an error, for a closed connection or because the system refuses a registration,
// woken is not called.
func (w *Waiter) Wait(timeout time.Duration) error {
	if w.loop == nil {
		return errors.ErrUnsupported
	}
	var waitErr error
	err := w.raw.Control(func(fd uintptr) { waitErr = w.loop.beginWait(w, int(fd), timeout) })
	if err != nil {
		return err
	}
	return waitErr
}

// Stop ends the wait. It reports whether it has: woken is not called then, and the connection is
// the caller's. It returns false if there is no wait, or if woken has been called or will be.
func (w *Waiter) Stop() bool {
	l := w.loop
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endWait(w)
}

// Handle ends the wait that the event belongs to. The loop calls it.
func (w *Waiter) Handle(l *Loop, e Event) {
	l.mu.Lock()
	ended := w.at.generation == e.of && l.endWait(w)
	l.mu.Unlock()
	if ended {
		l.call(w, Readable)
	}
}

// beginWait begins w's wait.
func (l *Loop) beginWait(w *Waiter, fd int, timeout time.Duration) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.at != (Registration{}) {
		return errWaiting
	}
	if w.at, err = l.add(fd, waitMask, w); err != nil || timeout <= 0 {
		return err
	}
	l.waiting.add(w, timeout)
	if w.deadline < l.wakeAt {
		l.wake()
	}
	return nil
}

// endWait ends w's wait. It returns false if there is none. The caller holds mu.
func (l *Loop) endWait(w *Waiter) bool {
	r := w.at
	if r == (Registration{}) {
		return false
	}
	w.at = Registration{}
	l.waiting.remove(w)
	// If the connection was closed before, its descriptor's number may be another's: then Control
	// fails. Else it keeps the descriptor open meanwhile.
	_ = w.raw.Control(func(uintptr) { _ = l.control(syscall.EPOLL_CTL_DEL, r, 0) })
	l.release(r)
	return true
}

// expire ends the waits that have reached their timeouts.
func (l *Loop) expire() {
	for w := l.takeExpired(); w != nil; w = l.takeExpired() {
		l.call(w, TimedOut)
	}
}

func (l *Loop) takeExpired() *Waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waiting.expired()
	if w != nil {
		l.endWait(w)
	}
	return w
}

// call starts w's function. Only the loop's goroutine may call it.
func (l *Loop) call(w *Waiter, why Reason) {
	l.started = true
	go w.woken(why)
}
