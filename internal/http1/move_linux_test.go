package http1_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/leaktest"
)

// A process that may not splice(2) copies bodies.
func TestBodyIsNotMovedWhereSpliceIsRefused(t *testing.T) {
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := http1.NewPool(http1.Options{Dial: func(_ context.Context, addr http1.Addr) (net.Conn, error) { return net.Dial("tcp", addr.Name) }, MaxHeader: 1 << 10})
	c, err := p.Get(t.Context(), http1.Addr{Name: l.Addr().String()}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := http1.BodyOf(c, http1.MoveFrom)
	if !b.Movable() {
		t.Error("not moved where it may be")
	}
	defer http1.ForbidSplice()()
	if b.Movable() {
		t.Error("moved where it may not be")
	}
	for errno, want := range map[syscall.Errno]bool{0: true, syscall.EBADF: true, syscall.EINVAL: true, syscall.EPERM: false, syscall.ENOSYS: false, syscall.EACCES: false} {
		if got := http1.SpliceAllowed(errno); got != want {
			t.Errorf("splice says %v: allowed %v, want %v", errno, got, want)
		}
	}
}
