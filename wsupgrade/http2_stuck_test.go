package wsupgrade_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// overStuckH2 runs script with an idle tunnel of a WebSocket, whose client reads nothing: the
// target of another of its streams has filled its connection, so the server can't send any frame.
func overStuckH2(t *testing.T, script func(t *testing.T, tunnel *wsupgrade.Tunnel, target net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, wsupgrade.RegistryOptions{})
		targets := make(chan net.Conn, 2)
		f := forwarder(t, wsupgrade.Options{Registry: r, Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := wstest.Pipe()
			targets <- far
			return near, nil
		}})
		clientConn, serverConn := wstest.Pipe()
		s := wiretest.Server(&http.Server{Protocols: new(http.Protocols), ErrorLog: wiretest.Quiet()})
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) { _, _ = f.Forward(w, in, outboundTo(in, "target.test")) })
		s.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = s.Serve(wiretest.OneConn(serverConn)) }()
		c := newH2Client(t, clientConn)
		c.check(c.WriteWindowUpdate(0, 1<<20))
		var ends []net.Conn
		for range 2 {
			id := c.open(false, extendedConnect("/")...)
			target := <-targets
			ends = append(ends, target)
			respondToHandshake(wiretest.NewPeer(t, target))
			c.status(id)
			synctest.Wait() // the tunnel is in the registry, which numbers them in that order
			c.check(c.WriteWindowUpdate(id, 1<<20))
		}
		go func() { _, _ = io.WriteString(ends[0], strings.Repeat(frame(text, strings.Repeat("x", 100)), 4000)) }()
		synctest.Wait() // the pipe to the client is full
		script(t, r.Get(2), ends[1])
		_ = clientConn.SetDeadline(time.Time{})
		go func() { _, _ = io.Copy(io.Discard, clientConn) }()
		for _, conn := range ends {
			conn.Close()
		}
		time.Sleep(time.Minute)
		if n := r.Len(); n != 0 {
			t.Errorf("%d tunnels are left", n)
		}
		clientConn.Close()
		_ = s.Close()
		synctest.Wait()
	})
}

// TestCloseOfAStuckStream: a client whose connection accepts no frame delays Close no longer than
// any other client, and its target receives the Close frame at once.
func TestCloseOfAStuckStream(t *testing.T) {
	overStuckH2(t, func(t *testing.T, tunnel *wsupgrade.Tunnel, target net.Conn) {
		begun := time.Now()
		received := make(chan time.Duration, 1)
		go func() {
			wantClose(t, target, wsupgrade.ServiceRestart, "", true)
			received <- time.Since(begun)
		}()
		closed := make(chan time.Duration, 1)
		go func() {
			tunnel.Close(wsupgrade.ServiceRestart, "")
			closed <- time.Since(begun)
		}()
		time.Sleep(time.Minute)
		for what, done := range map[string]chan time.Duration{"Close": closed, "Close frame": received} {
			select {
			case took := <-done:
				if took > time.Second {
					t.Errorf("%s after %v", what, took)
				}
			default:
				t.Errorf("no %s within a minute", what)
			}
		}
	})
}

// TestTunnelEndsDuringAWrite: the wait for the end of a write to a stream is one during which time
// passes in a bubble (internal/iolock), and does not hold up another call.
func TestTunnelEndsDuringAWrite(t *testing.T) {
	overStuckH2(t, func(t *testing.T, tunnel *wsupgrade.Tunnel, _ net.Conn) {
		go tunnel.Close(wsupgrade.ServiceRestart, "")
		synctest.Wait()
		tunnel.Abort()
		time.Sleep(time.Minute) // would not pass while a goroutine waits for a mutex
		aborted := make(chan struct{})
		go func() {
			tunnel.Abort()
			close(aborted)
		}()
		synctest.Wait()
		select {
		case <-aborted:
		default:
			t.Error("Abort waits for the write")
		}
	})
}

// slowDeadlines is a writer whose read deadline takes a while to be set. It counts the write deadlines that are over at once.
type slowDeadlines struct {
	*httptest.ResponseRecorder
	release chan struct{}
	resets  int
}

func (w *slowDeadlines) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		<-w.release
	}
	return nil
}

func (w *slowDeadlines) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() && at.Before(time.Now()) {
		w.resets++
	}
	return nil
}

// TestStreamEndsWhileADeadlineIsSet: a stream to which nothing is being written ends without a reset.
func TestStreamEndsWhileADeadlineIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowDeadlines{ResponseRecorder: httptest.NewRecorder(), release: make(chan struct{})}
		stream := wsupgrade.NewStream(w, httptest.NewRequest("CONNECT", "/", nil))
		go func() { _ = stream.SetReadDeadline(time.Now().Add(time.Hour)) }()
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			_ = stream.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("closed before the deadline was set")
		default:
		}
		close(w.release)
		<-closed
		if w.resets != 0 {
			t.Error("the stream was reset")
		}
	})
}
