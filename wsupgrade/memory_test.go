package wsupgrade_test

import (
	"bufio"
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
)

// half is one end of a connection in memory that buffers nothing and can be
// half-closed. Its deadlines follow a synctest bubble's clock.
type half struct{ net.Conn } // for writing
type duplex struct {
	net.Conn // for reading
	w        half
}

func newDuplex() (a, b *duplex) {
	ar, bw := net.Pipe()
	br, aw := net.Pipe()
	return &duplex{ar, half{aw}}, &duplex{br, half{bw}}
}

func (d *duplex) Write(p []byte) (int, error)        { return d.w.Write(p) }
func (d *duplex) CloseWrite() error                  { return d.w.Close() }
func (d *duplex) SetWriteDeadline(t time.Time) error { return d.w.SetWriteDeadline(t) }
func (d *duplex) SetDeadline(t time.Time) error {
	_ = d.Conn.SetReadDeadline(t)
	return d.w.SetWriteDeadline(t)
}
func (d *duplex) Close() error {
	_ = d.w.Close()
	return d.Conn.Close()
}

// hijackable is a ResponseWriter whose connection is conn.
type hijackable struct {
	*httptest.ResponseRecorder
	conn  net.Conn
	early string // the bytes that a server has read already
	taken bool
}

func (h *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	h.taken = true
	r := bufio.NewReader(io.MultiReader(strings.NewReader(h.early), h.conn))
	_, _ = r.Peek(len(h.early))
	return h.conn, bufio.NewReadWriter(r, bufio.NewWriter(h.conn)), nil
}

// request parses a handshake.
func request(t testing.TB, header string) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(header)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inMemory runs a tunnel between two ends in memory, in a bubble of its own.
func inMemory(t *testing.T, o wsupgrade.Options, header, reply string, script func(t *testing.T, client, target *duplex, done <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		client, clientSide := newDuplex()
		target, targetSide := newDuplex()
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return targetSide, nil }
		f := forwarder(t, o)
		done := make(chan error, 1)
		go func() {
			in := request(t, header)
			_, err := f.Forward(&hijackable{ResponseRecorder: httptest.NewRecorder(), conn: clientSide}, in, outboundTo(in, "target:80"))
			done <- err
		}()
		newQuietPeer(t, target).Header()
		_, _ = io.WriteString(target, reply)
		newQuietPeer(t, client).Header()
		script(t, client, target, done)
		client.Close()
		target.Close()
	})
}

// newQuietPeer returns a peer without a deadline.
func newQuietPeer(t *testing.T, conn net.Conn) *wiretest.Peer {
	p := wiretest.NewPeer(t, conn)
	_ = conn.SetDeadline(time.Time{})
	p.R = bufio.NewReaderSize(conn, 16)
	return p
}

// stillOpen and isDone check the tunnel when every goroutine of the bubble waits.
func stillOpen(t *testing.T, done <-chan error, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		t.Fatalf("ended %s: %v", when, err)
	default:
	}
}

func isDone(t *testing.T, done <-chan error, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended %s: %v", when, err)
		}
	default:
		t.Fatalf("still open %s", when)
	}
}

func discard(t *testing.T, conns ...net.Conn) {
	for _, conn := range conns {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
}

// A side that accepts nothing holds up the one that sends; the bytes are not buffered.
func TestBackpressure(t *testing.T) {
	inMemory(t, wsupgrade.Options{}, handshake, switching, func(t *testing.T, client, target *duplex, done <-chan error) {
		for name, from := range map[string]*duplex{"client": client, "target": target} {
			sent := make(chan int)
			go func() {
				n := 0
				for err := error(nil); err == nil; {
					var w int
					w, err = from.Write(make([]byte, 1000))
					n += w
				}
				sent <- n
			}()
			synctest.Wait()
			_ = from.SetWriteDeadline(time.Now())
			if n := <-sent; n == 0 || n > 64<<10 {
				t.Errorf("the %s could send %d bytes to a side that reads nothing", name, n)
			}
		}
		stillOpen(t, done, "under backpressure")
	})
}

// A WebSocket's side that sends nothing after the other has ended does not hold the tunnel for
// ever; one that continues to send does.
func TestSilenceAfterHalfClose(t *testing.T) {
	inMemory(t, wsupgrade.Options{}, handshake, switching, func(t *testing.T, client, target *duplex, done <-chan error) {
		discard(t, client, target)
		_ = client.CloseWrite()
		for range 10 {
			time.Sleep(50 * time.Second)
			_, _ = io.WriteString(target, "tail")
		}
		stillOpen(t, done, "while the target sends")
		time.Sleep(61 * time.Second)
		isDone(t, done, "after a minute of silence")
	})
}

// Other protocols may use a half-open connection.
func TestSilenceAfterHalfCloseOfOtherProtocols(t *testing.T) {
	header := "POST /attach HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	reply := "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	inMemory(t, wsupgrade.Options{Protocols: []string{"tcp"}}, header, reply, func(t *testing.T, client, target *duplex, done <-chan error) {
		discard(t, client, target)
		_ = client.CloseWrite()
		time.Sleep(24 * time.Hour)
		stillOpen(t, done, "after a day")
		_ = target.CloseWrite()
		isDone(t, done, "after both sides have ended")
	})
}

// An idle tunnel that is open both ways has no timeout of its own.
func TestIdleTunnelStaysOpen(t *testing.T) {
	inMemory(t, wsupgrade.Options{}, handshake, switching, func(t *testing.T, client, target *duplex, done <-chan error) {
		time.Sleep(24 * time.Hour)
		stillOpen(t, done, "after a day")
		client.Close()
		target.Close()
		isDone(t, done, "after both sides have closed")
	})
}

// A target that accepts nothing more, but does not end, has drainTimeout to send the rest.
func TestTargetStopsAccepting(t *testing.T) {
	inMemory(t, wsupgrade.Options{}, handshake, switching, func(t *testing.T, client, target *duplex, done <-chan error) {
		_ = target.Conn.Close() // its reading half
		_, _ = io.WriteString(client, "lost")
		_, _ = io.WriteString(client, "lost")
		go func() { _, _ = io.WriteString(target, "tail") }()
		newQuietPeer(t, client).Receive("tail")
		stillOpen(t, done, "at once")
		time.Sleep(6 * time.Second)
		isDone(t, done, "after five seconds")
	})
}
