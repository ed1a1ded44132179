package wsupgrade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// mirroring starts a WebSocket server that sends every byte back after its header, and ends with
// its client.
func mirroring(t testing.TB, lines ...string) (addr string) {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(with(switching, lines...))
		_, _ = io.Copy(struct{ io.Writer }{p.Conn}, p.R) // without a splice, whose pipe would be kept
	})
}

func registry(t testing.TB, o wsupgrade.RegistryOptions) *wsupgrade.Registry {
	t.Helper()
	r, err := wsupgrade.NewRegistry(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens a WebSocket.
func open(t testing.TB, addr string, lines ...string) *wiretest.Peer {
	t.Helper()
	p := wiretest.Dial(t, addr)
	p.Send(with(handshake, lines...))
	if header := p.Header(); !strings.HasPrefix(header, "HTTP/1.1 101 ") {
		t.Fatalf("response %q", header)
	}
	return p
}

// listed waits until n tunnels are listed: a client may receive its 101 a little before.
func listed(t *testing.T, r *wsupgrade.Registry, n int) {
	t.Helper()
	for range 60000 {
		if r.Len() == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d tunnels are listed, want %d", r.Len(), n)
}

func TestRegistryLists(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	target := mirroring(t, "Sec-WebSocket-Protocol: chat")
	before := time.Now()
	addr := gateway(t, wsupgrade.Options{Registry: r}, target)
	var clients []*wiretest.Peer
	for i := range 3 {
		p := open(t, addr, "Sec-WebSocket-Protocol: chat, other")
		sent := masked(text, strings.Repeat("x", i))
		p.Send(sent)
		p.Receive(sent)
		clients = append(clients, p)
	}
	n := 0
	for tunnel := range r.All() {
		wantBytes(t, tunnel, int64(6+n))
		if n++; tunnel.ID != uint64(n) || r.Get(tunnel.ID) != tunnel || tunnel.Protocol != "websocket" || tunnel.Subprotocol != "chat" || tunnel.Target != target || tunnel.Client != "127.0.0.1" {
			t.Errorf("tunnel %d: %+v", n, tunnel)
		}
		if tunnel.Start.Before(before) || tunnel.LastActive().Before(tunnel.Start) || tunnel.LastActive().After(time.Now()) {
			t.Errorf("start %v, last active %v", tunnel.Start, tunnel.LastActive())
		}
	}
	if n != 3 || r.Len() != 3 {
		t.Errorf("%d listed, length %d", n, r.Len())
	}
	second := r.Get(2)
	second.Abort()
	clients[1].Ended()
	wiretest.Await(t, second.Done(), "end of the tunnel")
	if r.Len() != 2 || r.Get(2) != nil {
		t.Errorf("%d are left", r.Len())
	}
	for range r.All() { // a loop may stop early
		break
	}
	clients[0].End()
	clients[2].End()
	clients[0].Ended()
	clients[2].Ended()
}

// wantBytes waits until the tunnel has counted the bytes that were received.
func wantBytes(t *testing.T, tunnel *wsupgrade.Tunnel, want int64) {
	t.Helper()
	for range 60000 {
		if toTarget, toClient := tunnel.Bytes(); toTarget == want && toClient == want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	toTarget, toClient := tunnel.Bytes()
	t.Errorf("tunnel %d: %d bytes to the target, %d to the client, want %d", tunnel.ID, toTarget, toClient, want)
}

// A client over a bound gets a 503 with Retry-After; one that leaves makes room for another.
func TestRegistryCaps(t *testing.T) {
	leaktest.Check(t)
	user := func(r *http.Request) string { return r.Header.Get("X-User") }
	r := registry(t, wsupgrade.RegistryOptions{Max: 3, MaxPerKey: 2, Key: user, RetryAfter: 7 * time.Second})
	addr := gateway(t, wsupgrade.Options{Registry: r}, mirroring(t))
	refused := func(user string) {
		t.Helper()
		p := wiretest.Dial(t, addr)
		p.Send(with(handshake, "X-User: "+user))
		if resp, _ := p.Response("GET"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" {
			t.Errorf("response %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	a := open(t, addr, "X-User: a")
	listed(t, r, 1)
	open(t, addr, "X-User: a")
	refused("a")
	open(t, addr, "X-User: b")
	refused("b")
	tunnel := r.Get(1)
	a.End()
	a.Ended()
	wiretest.Await(t, tunnel.Done(), "end of the tunnel")
	open(t, addr, "X-User: a")
	if err := r.Drain(canceled(), wsupgrade.GoingAway); err != context.Canceled {
		t.Errorf("drain: %v", err)
	}
}

// A handshake that fails releases its admission.
func TestFailedHandshakesLeaveTheRegistry(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{Max: 1})
	addr := gateway(t, wsupgrade.Options{Registry: r}, wiretest.Replying(t, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"))
	for range 3 {
		p := wiretest.Dial(t, addr)
		p.Send(handshake)
		p.Status(403)
	}
	if err := r.Drain(t.Context(), wsupgrade.GoingAway); err != nil {
		t.Error(err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// respondToClose reads a Close frame and responds to it as a client does.
func respondToClose(t *testing.T, p *wiretest.Peer, code int) {
	t.Helper()
	wantClose(t, p.R, code, "", false)
	p.Send(masked(closing, "\x03\xe9"))
}

// closingEcho starts a server that responds to a Close frame that is its client's first.
func closingEcho(t *testing.T) (addr string) {
	return wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(switching)
		wantClose(t, p.R, 1001, "", true)
		p.Send(frame(closing, "\x03\xe9"))
	})
}

// A drain sends both ends of each WebSocket a Close frame, refuses new ones, and also drains those
// whose handshake is under way.
func TestDrain(t *testing.T) {
	leaktest.Check(t)
	const clients = 100
	r := registry(t, wsupgrade.RegistryOptions{})
	target := closingEcho(t)
	requested, respond := make(chan struct{}), make(chan struct{})
	slow := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		requested <- struct{}{}
		<-respond
		p.Send(switching)
		wantClose(t, p.R, 1001, "", true)
		p.Send(frame(closing, "\x03\xe9"))
	})
	addr, slowAddr := gateway(t, wsupgrade.Options{Registry: r}, target), gateway(t, wsupgrade.Options{Registry: r}, slow)
	var peers []*wiretest.Peer
	for range clients {
		peers = append(peers, open(t, addr))
	}
	late := wiretest.Dial(t, slowAddr)
	late.Send(handshake)
	wiretest.Await(t, requested, "handshake")
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(t.Context(), wsupgrade.GoingAway) }()
	for _, p := range peers {
		respondToClose(t, p, 1001)
		if rest := p.Ended(); rest != "" {
			t.Errorf("after the Close frame: %q", rest)
		}
	}
	refused := wiretest.Dial(t, addr)
	refused.Send(handshake)
	refused.Status(503)
	if len(drained) != 0 {
		t.Error("drained with a handshake under way")
	}
	close(respond)
	late.Header()
	respondToClose(t, late, 1001)
	late.Ended()
	if err := wiretest.Await(t, drained, "end of the drain"); err != nil {
		t.Error(err)
	}
}

// A tunnel that does not end within the grace is cut.
func TestDrainCuts(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	p := open(t, gateway(t, wsupgrade.Options{Registry: r}, mirroring(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Drain(ctx, wsupgrade.ServiceRestart); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drain: %v", err)
	}
	wantClose(t, p.R, 1012, "", false)
	p.Ended()
}

// One target's tunnels are closed, and the others are kept.
func TestCloseWhere(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	going, staying := closingEcho(t), mirroring(t)
	leaves := open(t, gateway(t, wsupgrade.Options{Registry: r}, going))
	kept := open(t, gateway(t, wsupgrade.Options{Registry: r}, staying))
	listed(t, r, 2)
	closed := make(chan error, 1)
	go func() {
		closed <- r.CloseWhere(t.Context(), wsupgrade.GoingAway, func(tunnel *wsupgrade.Tunnel) bool { return tunnel.Target == going })
	}()
	respondToClose(t, leaves, 1001)
	leaves.Ended()
	if err := wiretest.Await(t, closed, "end"); err != nil {
		t.Error(err)
	}
	kept.Send("still here")
	kept.Receive("still here")
	if r.Len() != 1 {
		t.Errorf("%d tunnels", r.Len())
	}
	cut := make(chan error, 1)
	go func() {
		cut <- r.CloseWhere(canceled(), wsupgrade.GoingAway, func(*wsupgrade.Tunnel) bool { return true })
	}()
	kept.Ended()
	if err := wiretest.Await(t, cut, "end"); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// Shutdown of a server closes its WebSockets, through the hook.
func TestDrainOnShutdown(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	p := open(t, gateway(t, wsupgrade.Options{Registry: r}, closingEcho(t)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.DrainOnShutdown(20 * time.Second)()
	}()
	respondToClose(t, p, 1001)
	p.Ended()
	wiretest.Await(t, done, "end of the hook")
}

// With Start the handler returns, and the tunnel continues until its ends, or its registry, end it.
func TestStart(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{})
	f := forwarder(t, wsupgrade.Options{Registry: r})
	target := mirroring(t)
	returned, ended := make(chan string, 2), make(chan *wsupgrade.Tunnel, 2)
	addr := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := f.Start(w, r, outboundTo(r, target), func(tunnel *wsupgrade.Tunnel) { ended <- tunnel })
		returned <- fmt.Sprint(status, err)
	}))
	p := open(t, addr)
	if got := wiretest.Await(t, returned, "handler's end"); got != "101 <nil>" {
		t.Errorf("Start: %s", got)
	}
	p.Send("hello")
	p.Receive("hello")
	p.End()
	p.Rest()
	tunnel := wiretest.Await(t, ended, "end of the tunnel")
	wantBytes(t, tunnel, 5)
	p = open(t, addr)
	if err := r.Drain(canceled(), wsupgrade.GoingAway); err != context.Canceled {
		t.Errorf("drain: %v", err)
	}
	p.Ended()
	wiretest.Await(t, ended, "end of the tunnel")
}

func TestBadRegistryOptions(t *testing.T) {
	for _, o := range []wsupgrade.RegistryOptions{{Max: -1}, {MaxPerKey: -1}, {RetryAfter: -1}} {
		if r, err := wsupgrade.NewRegistry(o); r != nil || err == nil || err.Error() != "wsupgrade: RegistryOptions: a negative bound" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestDrainCutsHandshakes: a target that does not respond to its handshake does not hold up a drain
// whose time is over.
func TestDrainCutsHandshakes(t *testing.T) {
	leaktest.Check(t)
	r := registry(t, wsupgrade.RegistryOptions{RetryAfter: 7 * time.Second})
	requested := make(chan struct{}, 1)
	silent := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		requested <- struct{}{}
		p.Ended()
	})
	client := wiretest.Dial(t, gateway(t, wsupgrade.Options{Registry: r}, silent))
	client.Send(handshake)
	wiretest.Await(t, requested, "handshake")
	if err := r.Drain(canceled(), wsupgrade.GoingAway); err != context.Canceled {
		t.Errorf("drain: %v", err)
	}
	if resp, _ := client.Response("GET"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" {
		t.Errorf("response %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
}

// TestCloseWhereDoesNotWaitForWrites: peers that read nothing do not hold up a call whose context
// has ended.
func TestCloseWhereDoesNotWaitForWrites(t *testing.T) {
	overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, _, _ *duplex, done <-chan error) {
		begun := time.Now()
		err := r.CloseWhere(canceled(), wsupgrade.GoingAway, func(*wsupgrade.Tunnel) bool { return true })
		if took := time.Since(begun); err != context.Canceled || took > 0 {
			t.Errorf("%v after %v", err, took)
		}
		isDone(t, done, "at once")
	})
}

// TestDrainCutsDuringCloseFrames: a tunnel that opens while a drain runs, and whose ends read
// nothing, is cut when the drain's time is over, though its Close frames are being written then.
func TestDrainCutsDuringCloseFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, wsupgrade.RegistryOptions{})
		client, clientSide := newDuplex()
		target, targetSide := newDuplex()
		f := forwarder(t, wsupgrade.Options{Registry: r, Dial: func(context.Context, string, string) (net.Conn, error) { return targetSide, nil }})
		done := make(chan error, 1)
		go func() {
			in := request(t, handshake)
			_, err := f.Forward(&hijackable{ResponseRecorder: httptest.NewRecorder(), conn: clientSide}, in, outboundTo(in, "target:80"))
			done <- err
		}()
		newQuietPeer(t, target).Header()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		drained := make(chan error, 1)
		go func() { drained <- r.Drain(ctx, wsupgrade.GoingAway) }()
		time.Sleep(10 * time.Millisecond)
		_, _ = io.WriteString(target, switching)
		newQuietPeer(t, client).Header()
		if err := <-drained; err != context.DeadlineExceeded || time.Since(begun) > time.Second {
			t.Errorf("drain: %v after %v", err, time.Since(begun))
		}
		isDone(t, done, "with the drain")
		client.Close()
		target.Close()
	})
}
