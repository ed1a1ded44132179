package wsupgrade_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// inMemoryH2 runs script over HTTP/2 and a target in memory, in a bubble of its own.
func inMemoryH2(t *testing.T, handler func(*wsupgrade.Forwarder) http.Handler, script func(t *testing.T, c *h2Client, target net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		clientConn, serverConn := wstest.Pipe()
		targetConn, targetSide := wstest.Pipe()
		f := forwarder(t, wsupgrade.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return targetSide, nil }})
		s := wiretest.Server(&http.Server{Handler: handler(f), Protocols: new(http.Protocols), ErrorLog: wiretest.Quiet()})
		s.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = s.Serve(wiretest.OneConn(serverConn)) }()
		script(t, newH2Client(t, clientConn), targetConn)
		clientConn.Close()
		targetConn.Close()
		_ = s.Close()
		synctest.Wait()
	})
}

// A WebSocket's target that ends without a Close frame is gone: the client's stream ends at once,
// after what was sent before.
func TestExtendedConnectToATargetThatDies(t *testing.T) {
	handler := func(f *wsupgrade.Forwarder) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = f.Forward(w, r, outboundTo(r, "target.test")) })
	}
	inMemoryH2(t, handler, func(t *testing.T, c *h2Client, target net.Conn) {
		go func() {
			respondToHandshake(wiretest.NewPeer(t, target))
			_, _ = io.WriteString(target, frame(text, "tail"))
			target.Close()
		}()
		start := time.Now()
		id := c.open(false, extendedConnect("/")...)
		c.status(id)
		if got := c.data(id, 6); got != frame(text, "tail") {
			t.Errorf("got %q", got)
		}
		c.ended(id)
		if took := time.Since(start); took > 0 { // of the bubble's time
			t.Errorf("the client's stream ended after %v", took)
		}
	})
}

// Other protocols know half-open connections: what is under way from the client is delivered, but
// the stream of a silent client ends soon.
func TestConnectStreamOfATargetThatEnds(t *testing.T) {
	handler := func(f *wsupgrade.Forwarder) http.Handler {
		h, err := f.Connect(func(*http.Request) (string, error) { return "target.test:1", nil })
		if err != nil {
			t.Error(err)
		}
		return h
	}
	inMemoryH2(t, handler, func(t *testing.T, c *h2Client, target net.Conn) {
		id := c.open(false, ":method CONNECT", ":authority target.test:1")
		c.status(id)
		_ = target.(interface{ CloseWrite() error }).CloseWrite()
		for range 4 {
			time.Sleep(400 * time.Millisecond)
			c.check(c.WriteData(id, false, []byte("x")))
			if _, err := io.ReadFull(target, make([]byte, 1)); err != nil {
				t.Errorf("the target: %v", err)
			}
		}
		start := time.Now()
		c.ended(id)
		if took := time.Since(start); took > time.Second {
			t.Errorf("a silent client's stream ended after %v", took)
		}
	})
}
