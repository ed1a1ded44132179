package netloop_test

import (
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/netloop"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A loop that is asleep ends when its last member is removed by another goroutine, and starts again
// with the next one. It is woken only while it can't end: its eventfd's number may be another
// file's afterwards.
func TestLoopEndsWithItsLastMember(t *testing.T) {
	leaktest.Check(t)
	var s netloop.Set
	var woken atomic.Int64
	s.HookWake(func(mayEnd bool) {
		woken.Add(1)
		if mayEnd {
			t.Error("the loop may have closed what it is woken by")
		}
	})
	l := s.Next()
	for round := int64(1); round <= 2; round++ {
		near, far := sockets(t)
		called := make(chan uint32, 1)
		r, err := l.Add(int(near), mask, handler(func(_ *netloop.Loop, e netloop.Event) { called <- e.Mask }))
		if err != nil {
			t.Fatal(err)
		}
		far.send(t)
		if got := wiretest.Await(t, called, "event"); got != syscall.EPOLLIN {
			t.Errorf("events %#x", got)
		}
		until(t, "the loop is asleep", l.Asleep)
		l.Remove(r)
		if n := woken.Load(); n != round {
			t.Errorf("the loop was woken %d times", n)
		}
		near.close()
		far.close()
		until(t, "the loop has ended", func() bool { return !l.Running() })
	}
}

// What the system refuses is an error of Add. It leaves neither a loop nor a registration behind.
func TestRefusedRegistrations(t *testing.T) {
	leaktest.Check(t)
	for refused := 1; refused <= 3; refused++ { // the eventfd, the descriptor, none
		var s netloop.Set
		calls := 0
		s.Control = func(epoll, operation, fd int, event *syscall.EpollEvent) error {
			if calls++; calls == refused {
				return syscall.ENOSPC
			}
			return syscall.EpollCtl(epoll, operation, fd, event)
		}
		near, far := sockets(t)
		l := s.Next()
		called := make(chan struct{}, 2)
		h := handler(func(*netloop.Loop, netloop.Event) { called <- struct{}{} })
		r, err := l.Add(int(near), mask, h)
		if refusal := refused < 3; refusal != (err != nil) {
			t.Errorf("call %d refused: %v", refused, err)
		}
		if err != nil {
			if r, err = l.Add(int(near), mask, h); err != nil {
				t.Fatalf("call %d refused, once more: %v", refused, err)
			}
		}
		far.send(t)
		wiretest.Await(t, called, "event")
		l.Remove(r)
		near.close()
		far.close()
	}
}

// A registration that was removed can't be modified, nor removed once more when its place is
// another's.
func TestRemovedRegistration(t *testing.T) {
	leaktest.Check(t)
	var s netloop.Set
	l := s.Next()
	near, far := sockets(t)
	defer far.close()
	defer near.close()
	never := handler(func(*netloop.Loop, netloop.Event) { t.Error("the former handler was called") })
	r, err := l.Add(int(near), mask, never)
	if err != nil {
		t.Fatal(err)
	}
	l.Remove(r)
	if err := l.Modify(r, mask); err == nil {
		t.Error("Modify of a registration that was removed")
	}
	called := make(chan struct{}, 1)
	next, err := l.Add(int(near), mask, handler(func(*netloop.Loop, netloop.Event) { called <- struct{}{} }))
	if err != nil {
		t.Fatal(err)
	}
	l.Remove(r)
	if err := l.Modify(r, mask); err == nil {
		t.Error("Modify of the registration that followed")
	}
	far.send(t)
	wiretest.Await(t, called, "event after the former registration was removed twice")
	l.Remove(next)
}

// A handler that has a batch of events before it removes another member of the batch, whose
// descriptor's number and place in the table another one takes. That one does not get the event.
func TestEventOfAFormerMember(t *testing.T) {
	leaktest.Check(t)
	var s netloop.Set
	l := s.Next()
	first, peer := sockets(t)
	former, formerPeer := sockets(t)
	var all []netloop.Registration
	var next, nextPeer socket
	called := make(chan string, 8)
	add := func(fd socket, h func(l *netloop.Loop)) netloop.Registration {
		r, err := l.Add(int(fd), mask, handler(func(l *netloop.Loop, _ netloop.Event) { h(l) }))
		if err != nil {
			t.Error(err)
		}
		return r
	}
	var formerAt netloop.Registration
	swap := func(l *netloop.Loop) { // both events are in the batch
		l.Remove(formerAt)
		former.close()
		formerPeer.close()
		for next, nextPeer = sockets(t); next != former; next, nextPeer = sockets(t) {
			t.Error("the descriptor's number was not reused")
			return
		}
		all = append(all, add(next, func(*netloop.Loop) { called <- "next" }))
		called <- "swapped"
	}
	batch(t, l, func() {
		all = append(all, add(first, swap))
		formerAt = add(former, func(*netloop.Loop) { called <- "former" })
		peer.send(t)
		formerPeer.send(t)
	})
	if got := wiretest.Await(t, called, "call"); got != "swapped" {
		t.Fatalf("%s was called", got)
	}
	batch(t, l, func() {}) // after the batch
	select {
	case got := <-called:
		t.Errorf("%s was called with the former one's event", got)
	default:
	}
	nextPeer.send(t)
	if got := wiretest.Await(t, called, "call"); got != "next" {
		t.Errorf("%s was called", got)
	}
	for _, r := range all {
		l.Remove(r)
	}
	for _, fd := range []socket{first, peer, next, nextPeer} {
		fd.close()
	}
}

// batch keeps the loop in a handler while fn runs, so that the events which fn makes are handled in
// one batch.
func batch(t *testing.T, l *netloop.Loop, fn func()) {
	t.Helper()
	near, far := sockets(t)
	defer far.close()
	defer near.close()
	entered, leave := make(chan struct{}), make(chan struct{})
	r, err := l.Add(int(near), mask, handler(func(*netloop.Loop, netloop.Event) {
		entered <- struct{}{}
		<-leave
	}))
	if err != nil {
		t.Fatal(err)
	}
	far.send(t)
	wiretest.Await(t, entered, "event")
	fn()
	close(leave)
	l.Remove(r)
}
