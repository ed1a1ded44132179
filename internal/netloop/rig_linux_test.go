package netloop_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/netloop"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// mask selects the events that the handlers of these tests are called with.
const mask = syscall.EPOLLIN | syscall.EPOLLRDHUP | netloop.EdgeTriggered

// handlerFunc is a Handler, by its pointer.
type handlerFunc func(l *netloop.Loop, e netloop.Event)

func (h *handlerFunc) Handle(l *netloop.Loop, e netloop.Event) { (*h)(l, e) }

func handler(fn func(l *netloop.Loop, e netloop.Event)) netloop.Handler {
	h := handlerFunc(fn)
	return &h
}

// socket is one end of a pair whose descriptor the runtime's poller does not know.
type socket int

func (s socket) send(t testing.TB) {
	if _, err := syscall.Write(int(s), []byte("x")); err != nil {
		t.Errorf("write: %v", err)
	}
}

func (s socket) close() { _ = syscall.Close(int(s)) }

// sockets returns both ends of a connection.
func sockets(t testing.TB) (near, far socket) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(os.NewSyscallError("socketpair", err))
	}
	return socket(fds[0]), socket(fds[1])
}

// unixPair returns both ends of a connection of package net.
func unixPair(t testing.TB) (near, far net.Conn) {
	a, b := sockets(t)
	return connOf(t, a), connOf(t, b)
}

// unixPairAt returns a connection whose descriptor has that number, which was closed just before.
func unixPairAt(t testing.TB, number int) (near, far net.Conn) {
	for range 100 {
		near, far = unixPair(t)
		switch number {
		case descriptor(t, near):
			return near, far
		case descriptor(t, far):
			return far, near
		}
		defer near.Close() // after the search, so that another number is next
		defer far.Close()
	}
	t.Error("the descriptor's number was not reused")
	return near, far
}

func connOf(t testing.TB, s socket) net.Conn {
	file := os.NewFile(uintptr(s), "")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tcpPair(testing.TB) (near, far net.Conn) { return dialled() }

// descriptor returns the number of c's descriptor.
func descriptor(t testing.TB, c net.Conn) (fd int) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// waits prepares a Waiter for c. The reasons of its waits are sent to the channel.
func waits(t testing.TB, s *netloop.Set, c net.Conn) (*netloop.Waiter, <-chan netloop.Reason) {
	w, woken := new(netloop.Waiter), make(chan netloop.Reason, 8)
	if err := w.Init(s, c, func(r netloop.Reason) { woken <- r }); err != nil {
		t.Fatal(err)
	}
	return w, woken
}

func begin(t testing.TB, w *netloop.Waiter, timeout time.Duration) {
	t.Helper()
	if err := w.Wait(timeout); err != nil {
		t.Fatalf("Wait: %v", err)
	}
}

// ends expects that a wait ends for the reason.
func ends(t testing.TB, woken <-chan netloop.Reason, want netloop.Reason) {
	t.Helper()
	if got := wiretest.Await(t, woken, "the wait's end"); got != want {
		t.Errorf("the wait ended for the reason %d, want %d", got, want)
	}
}

// pass waits until the loop of s has handled the events before. It expects that woken, if not nil,
// has received nothing.
func pass(t testing.TB, s *netloop.Set, woken <-chan netloop.Reason) {
	t.Helper()
	for range 2 { // the first one may be handled beside the events before
		near, far := unixPair(t)
		w, other := waits(t, s, near)
		begin(t, w, 0)
		_ = far.Close()
		ends(t, other, netloop.Readable)
		_ = near.Close()
	}
	select {
	case r := <-woken:
		t.Errorf("woken for the reason %d", r)
	default:
	}
}

// until waits until the condition is true.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for start := time.Now(); !condition(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
}
