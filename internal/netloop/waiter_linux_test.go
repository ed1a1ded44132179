package netloop_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/netloop"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// pairs are the kinds of connections that can wait.
var pairs = map[string]func(testing.TB) (near, far net.Conn){"tcp": tcpPair, "unix": unixPair}

// A wait ends once for each of several pieces, and the bytes are left in the socket.
func TestWaitUntilReadable(t *testing.T) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			s := netloop.OneLoop()
			near, far := pair(t)
			defer near.Close()
			defer far.Close()
			w, woken := waits(t, s, near)
			for range 3 {
				begin(t, w, time.Hour)
				pass(t, s, woken)
				_, _ = far.Write([]byte("x"))
				ends(t, woken, netloop.Readable)
				_, _ = far.Write([]byte("y"))
				pass(t, s, woken) // the wait is over
				begin(t, w, 0)    // there are bytes in the socket
				ends(t, woken, netloop.Readable)
				if n, err := io.ReadFull(near, make([]byte, 2)); err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
			}
		})
	}
}

// The end of a connection, a reset, and the end of its peer's half end a wait.
func TestWaitUntilItsEnd(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	for name, end := range map[string]func(far *net.TCPConn){
		"close": func(far *net.TCPConn) { _ = far.Close() },
		"half":  func(far *net.TCPConn) { _ = far.CloseWrite() },
		"reset": func(far *net.TCPConn) { _ = far.SetLinger(0); _ = far.Close() },
	} {
		near, far := tcpPair(t)
		w, woken := waits(t, s, near)
		begin(t, w, 0)
		end(far.(*net.TCPConn))
		ends(t, woken, netloop.Readable)
		if n, err := near.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: %d bytes", name, n)
		}
		_ = near.Close()
		_ = far.Close()
	}
}

// Waits end at their timeouts, also while the loop sleeps until a later one or for ever, and not in
// the order of their beginnings.
func TestWaitTimesOut(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	for _, timeout := range []time.Duration{0, 1<<63 - 1, time.Hour} {
		near, far := unixPair(t)
		defer near.Close()
		defer far.Close()
		w, woken := waits(t, s, near)
		begin(t, w, timeout)
		defer w.Stop()
		pass(t, s, woken)
	}
	near, far := unixPair(t)
	defer near.Close()
	defer far.Close()
	w, woken := waits(t, s, near)
	for _, timeout := range []time.Duration{time.Millisecond, 150 * time.Millisecond, 1} {
		start := time.Now()
		begin(t, w, timeout)
		pass(t, s, nil) // the loop looks what has timed out
		ends(t, woken, netloop.TimedOut)
		if took := time.Since(start); took < timeout {
			t.Errorf("a wait of %v ended after %v", timeout, took)
		}
	}
}

// Of many waits with two timeouts, some of which are stopped, the others end.
func TestStoppedWaitsAmongOthers(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	var waiters []*netloop.Waiter
	var woken []<-chan netloop.Reason
	for i := range 40 {
		near, far := unixPair(t)
		defer near.Close()
		defer far.Close()
		w, c := waits(t, s, near)
		begin(t, w, time.Second+time.Duration(i%2)) // longer than the stops need
		waiters, woken = append(waiters, w), append(woken, c)
	}
	stopped := map[int]bool{}
	for _, i := range []int{7, 9, 11, 20, 8, 0, 1, 2, 39, 38, 36, 30} { // within the lists, and at both ends
		stopped[i] = waiters[i].Stop() // false if the machine has stopped meanwhile
	}
	for i, c := range woken {
		if !stopped[i] {
			ends(t, c, netloop.TimedOut)
		}
	}
	for i := range stopped {
		select {
		case why := <-woken[i]:
			if stopped[i] {
				t.Errorf("the wait %d was stopped and has ended for the reason %d", i, why)
			}
		default:
		}
	}
}

// Stop reports whether it has ended the wait, in which case the function is not called.
func TestStop(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	near, far := tcpPair(t)
	defer near.Close()
	defer far.Close()
	w, woken := waits(t, s, near)
	if w.Stop() {
		t.Error("Stop of a wait that has not begun")
	}
	begin(t, w, time.Hour)
	if !w.Stop() {
		t.Error("Stop returned false during a wait")
	}
	if w.Stop() {
		t.Error("Stop returned true twice")
	}
	_, _ = far.Write([]byte("x"))
	pass(t, s, woken)
	begin(t, w, time.Hour)
	ends(t, woken, netloop.Readable)
	if w.Stop() {
		t.Error("Stop returned true after the wait")
	}
}

// An event of a former wait, which the loop has had in hand while the wait was stopped and another one
// began, does not end that one.
func TestEventOfAFormerWait(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	near, far := unixPair(t)
	defer near.Close()
	defer far.Close()
	w, woken := waits(t, s, near)
	begin(t, w, 0)
	w.Handle(s.Next(), netloop.Event{Mask: syscall.EPOLLIN})
	pass(t, s, woken)
	if !w.Stop() {
		t.Error("the wait has ended")
	}
}

// A wait can't begin twice, nor for a connection that is closed, nor where the system refuses it:
// the function is not called then.
func TestWaitFails(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	near, far := tcpPair(t)
	defer far.Close()
	w, woken := waits(t, s, near)
	begin(t, w, time.Hour)
	if err := w.Wait(time.Hour); err == nil {
		t.Error("a second wait has begun")
	}
	if !w.Stop() {
		t.Error("the first wait has ended")
	}
	refused := netloop.OneLoop()
	refused.Control = func(int, int, int, *syscall.EpollEvent) error { return syscall.ENOSPC }
	v, other := waits(t, refused, near)
	if err := v.Wait(time.Hour); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a registration that the system refuses: %v", err)
	}
	_ = near.Close()
	if err := w.Wait(time.Hour); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Wait for a closed connection: %v", err)
	}
	pass(t, s, woken)
	pass(t, s, other)
	if v.Stop() || w.Stop() {
		t.Error("Stop returned true after Wait has failed")
	}
}

// Only plain sockets can be waited for: others may hold bytes that were read.
func TestOtherConnections(t *testing.T) {
	near, far := tcpPair(t)
	defer near.Close()
	defer far.Close()
	var s netloop.Set
	for name, c := range map[string]net.Conn{
		"TLS":      tls.Client(near, nil),
		"embedded": struct{ *net.TCPConn }{near.(*net.TCPConn)},
	} {
		var w netloop.Waiter
		if err := w.Init(&s, c, nil); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Wait(0); !errors.Is(err, errors.ErrUnsupported) || w.Stop() {
			t.Errorf("%s: Wait: %v", name, err)
		}
	}
}

// An event of a connection that is stopped and closed in a batch of events does not reach the
// connection that takes over its descriptor's number and its place in the table.
func TestEventOfAFormerConnection(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	l := s.Next()
	former, formerFar := unixPair(t)
	w, woken := waits(t, s, former)
	number := descriptor(t, former)
	trigger, triggerFar := sockets(t)
	defer trigger.close()
	defer triggerFar.close()
	type connection struct {
		near, far net.Conn
		woken     <-chan netloop.Reason
	}
	swapped := make(chan connection, 1)
	var r netloop.Registration
	batch(t, l, func() {
		var err error
		r, err = l.Add(int(trigger), mask, handler(func(*netloop.Loop, netloop.Event) {
			if !w.Stop() {
				t.Error("the event was not in the batch of the trigger's")
			}
			_ = former.Close()
			var next connection
			next.near, next.far = unixPairAt(t, number)
			v, woken := waits(t, s, next.near)
			begin(t, v, 0)
			next.woken = woken
			swapped <- next
		}))
		if err != nil {
			t.Fatal(err)
		}
		begin(t, w, 0)
		triggerFar.send(t)
		_, _ = formerFar.Write([]byte("x"))
	})
	next := wiretest.Await(t, swapped, "swap")
	defer next.near.Close()
	defer next.far.Close()
	_ = formerFar.Close()
	pass(t, s, next.woken)
	pass(t, s, woken)
	_, _ = next.far.Write([]byte("x"))
	ends(t, next.woken, netloop.Readable)
	l.Remove(r)
}

// If a connection is closed before its wait ends, that leaves alone the connection which has its
// descriptor's number.
func TestClosedBeforeTheEnd(t *testing.T) {
	leaktest.Check(t)
	s := netloop.OneLoop()
	former, formerFar := unixPair(t)
	defer formerFar.Close()
	w, woken := waits(t, s, former)
	number := descriptor(t, former)
	begin(t, w, 20*time.Millisecond)
	_ = former.Close()
	near, far := unixPairAt(t, number)
	defer near.Close()
	defer far.Close()
	v, next := waits(t, s, near)
	begin(t, v, 0)
	ends(t, woken, netloop.TimedOut)
	pass(t, s, next)
	_, _ = far.Write([]byte("x"))
	ends(t, next, netloop.Readable)
}
