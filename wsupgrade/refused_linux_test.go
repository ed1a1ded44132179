package wsupgrade_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// serveStart serves Start, whose handler does not wait for the tunnel.
func serveStart(t *testing.T, f *wsupgrade.Forwarder, target string) (addr string) {
	return wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := f.Start(w, r, outboundTo(r, target), nil); err != nil {
			t.Errorf("Start: %v", err)
		}
	}))
}

// echoesLargeFrames sends frames of all sizes to an echo, both ways at once.
func echoesLargeFrames(t *testing.T, p *wiretest.Peer) {
	t.Helper()
	var sent []byte
	for _, n := range []int{1 << 20, 40000, 5, 2 << 20, 65536} {
		sent = append(sent, largeFrame(n)...)
	}
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = p.Write(sent) })
	got := make([]byte, len(sent))
	if n, err := io.ReadFull(p.R, got); err != nil {
		t.Errorf("after %d of %d bytes: %v", n, len(got), err)
		p.Close()
	} else {
		wiretest.SameBytes(t, "frames", got, sent)
	}
	sending.Wait()
}

// If the system refuses splice(2), from the first call or from a later one on, on either side of
// the pipe, the bytes are copied, and it is not called for ever.
func TestSpliceRefused(t *testing.T) {
	leaktest.Check(t)
	for _, refusal := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS, syscall.EACCES, syscall.EINVAL} {
		for allowed := range int64(4) {
			var calls, refused atomic.Int64
			f := forwarder(t, wsupgrade.Options{})
			f.HookSplice(func(real func(from, to, n int) (int, error), from, to, n int) (int, error) {
				if calls.Add(1) > allowed {
					refused.Add(1)
					return 0, refusal
				}
				return real(from, to, n)
			})
			p := open(t, serveStart(t, f, mirroring(t)))
			echoesLargeFrames(t, p)
			p.Close()
			if n := refused.Load(); n > 3 { // both directions, and the pipe
				t.Errorf("%v after %d calls: splice was tried %d times more", refusal, allowed, n)
			}
		}
	}
}

// After a 101 a tunnel that no loop can watch runs on the portable engine, with each early byte
// once.
func TestEpollRefused(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching + "early")
		_, _ = io.Copy(struct{ io.Writer }{p.Conn}, p.R)
	})
	for refused := range int64(4) { // wakeFD, the client, the target, none
		var calls atomic.Int64
		r := registry(t, wsupgrade.RegistryOptions{})
		f := forwarder(t, wsupgrade.Options{Registry: r})
		var forgotten atomic.Int64
		f.HookEpoll(func(operation int) error {
			if calls.Add(1) == refused+1 {
				return syscall.ENOSPC
			}
			if operation == syscall.EPOLL_CTL_DEL {
				forgotten.Add(1)
			}
			return nil
		})
		addr := serveStart(t, f, target)
		for range 2 {
			p := wiretest.Dial(t, addr)
			p.Send(handshake + "first")
			p.Header()
			p.Receive("early" + "first")
			p.Send("second")
			p.Receive("second")
			p.End()
			if rest := p.Rest(); rest != "" {
				t.Errorf("refused %d: %q was received besides", refused, rest)
			}
		}
		listed(t, r, 0)
		if watched := refused == 2 && !portable; watched && forgotten.Load() == 0 {
			t.Error("the loop hears of the client of a tunnel that it does not serve")
		}
	}
}

// A tunnel ends if its loop can't get an event when a side accepts bytes again, and does not wait
// for ever.
func TestEpollRefusedUnderBackpressure(t *testing.T) {
	leaktest.Check(t)
	if portable {
		return // there is no such call
	}
	f := forwarder(t, wsupgrade.Options{})
	f.HookEpoll(func(operation int) error {
		if operation == syscall.EPOLL_CTL_MOD {
			return syscall.ENOMEM
		}
		return nil
	})
	ended := make(chan string, 1)
	full := make(chan struct{})
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		<-full
		p.Ended()
		ended <- ""
	})
	p := open(t, serveStart(t, f, target))
	var sending sync.WaitGroup
	sending.Go(func() {
		for err := error(nil); err == nil; { // the target accepts nothing
			_, err = p.Write(make([]byte, 64<<10))
		}
	})
	p.Ended()
	p.Close()
	sending.Wait()
	close(full)
	wiretest.Await(t, ended, "end at the target")
}
