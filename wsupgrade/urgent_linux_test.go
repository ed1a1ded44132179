package wsupgrade_test

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// sendUrgent sends TCP urgent data, which no reader of the tunnel receives.
func sendUrgent(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Write(func(fd uintptr) bool {
		err = syscall.Sendto(int(fd), []byte("!"), syscall.MSG_OOB, nil)
		return err != syscall.EAGAIN
	})
	if err != nil {
		t.Errorf("urgent data: %v", err)
	}
}

// held starts a target that sends on requested when it has the handshake, switches when it can send
// there once more, and returns the n bytes that follow.
func held(t *testing.T, requested chan<- struct{}, n int) (addr string, got <-chan []byte) {
	c := make(chan []byte, 1)
	return wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		requested <- struct{}{}
		requested <- struct{}{}
		p.Send(switching)
		received := make([]byte, n)
		n := 0
		for n < len(received) {
			m, err := p.R.Read(received[n:])
			if n += m; err != nil {
				t.Errorf("the target got %d of %d bytes: %v", n, len(received), err)
				break
			}
		}
		c <- received[:n]
	}), c
}

// A read ends before urgent data, though more bytes are available: no event follows for them.
func TestBytesAfterUrgentData(t *testing.T) {
	leaktest.Check(t)
	requested := make(chan struct{})
	target, got := held(t, requested, len("before, after"))
	p := wiretest.Dial(t, serveStart(t, forwarder(t, wsupgrade.Options{}), target))
	p.Send(handshake)
	wiretest.Await(t, requested, "handshake")
	p.Send("before")
	sendUrgent(t, p.Conn)
	p.Send(", after")
	<-requested
	if all := wiretest.Await(t, got, "bytes"); string(all) != "before, after" {
		t.Errorf("the target got %q", all)
	}
}

// The same in the middle of a frame that is spliced.
func TestUrgentDataInALargeFrame(t *testing.T) {
	leaktest.Check(t)
	frame := largeFrame(1 << 20)
	requested := make(chan struct{}, 2)
	target, got := held(t, requested, len(frame))
	p := open(t, serveStart(t, forwarder(t, wsupgrade.Options{}), target))
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _ = p.Write(frame[:len(frame)/2])
		sendUrgent(t, p.Conn)
		_, _ = p.Write(frame[len(frame)/2:])
	})
	all := wiretest.Await(t, got, "frame")
	p.Close()
	sending.Wait()
	wiretest.SameBytes(t, "frame", all, frame)
}

// Over a Unix socket a read ends after bytes with which a descriptor was sent.
func TestBytesBehindDescriptors(t *testing.T) {
	leaktest.Check(t)
	requested := make(chan struct{})
	target, got := held(t, requested, 3)
	f := forwarder(t, wsupgrade.Options{})
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "gateway"))
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = f.Start(w, r, outboundTo(r, target), nil)
	})}}
	wiretest.Start(s)
	t.Cleanup(s.Close)
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := wiretest.NewPeer(t, conn)
	p.Send(handshake)
	wiretest.Await(t, requested, "handshake")
	for _, b := range []string{"a", "b", "c"} { // net/http itself reads the first
		if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte(b), syscall.UnixRights(int(file.Fd())), nil); err != nil {
			t.Fatal(err)
		}
	}
	<-requested
	if all := wiretest.Await(t, got, "bytes"); !bytes.Equal(all, []byte("abc")) {
		t.Errorf("the target got %q", all)
	}
}
