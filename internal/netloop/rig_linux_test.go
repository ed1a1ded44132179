package netloop_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/netloop"
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

// until waits until the condition is true.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for start := time.Now(); !condition(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("never: %s", what)
		}
	}
}
