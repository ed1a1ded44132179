package wsupgrade_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/wsupgrade"
)

var histories = choices.NewFlags(300, 100)

// registryHistory runs tunnels of one registry, and models what the registry must do with them.
type registryHistory struct {
	c         *choices.Choices
	registry  *wsupgrade.Registry
	forwarder *wsupgrade.Forwarder
	options   wsupgrade.RegistryOptions
	draining  bool

	mu      sync.Mutex
	tunnels []*modelTunnel
	ends    []*modelEnd
	log     []string
	errs    []error
}

// modelTunnel is a tunnel with its peers, from its handshake on.
type modelTunnel struct {
	h              *registryHistory
	user           string
	client, target *modelPeer
	delay          time.Duration // of the target's response
	refuses        bool          // with a 403
	cancel         context.CancelFunc

	// Under h.mu.
	tunnel   *wsupgrade.Tunnel
	over     bool
	end      time.Time
	err      error
	code     int       // of the first call that ends it; 0: none has
	closedAt time.Time // when that was
	touched  bool      // a peer, an Abort or the end of its request may have ended it, too
}

// modelEnd is a Drain or a CloseWhere that is under way.
type modelEnd struct {
	what     string
	started  time.Time
	tunnels  []*modelTunnel // those that it waits for
	deadline time.Time      // of its context; zero: none
	err      error
	returned time.Time // zero: not yet
}

// fail records a failure.
func (h *registryHistory) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, fmt.Errorf(format, args...))
}

// TestRegistryHistories: tunnels that begin, end, are closed and drained at random are counted,
// admitted, closed and cut as the documentation of Registry says.
func TestRegistryHistories(t *testing.T) {
	histories.Run(t, func(t *testing.T, c *choices.Choices) error {
		h := &registryHistory{c: c}
		synctest.Test(t, func(t *testing.T) { h.run(t) })
		if len(h.errs) > 0 {
			return fmt.Errorf("%w after\n%s", errors.Join(h.errs...), strings.Join(h.log, "\n"))
		}
		return nil
	})
}

func (h *registryHistory) run(t *testing.T) {
	h.options = wsupgrade.RegistryOptions{Max: h.c.Int(6), MaxPerKey: h.c.Int(4), RetryAfter: 7 * time.Second, Key: func(r *http.Request) string { return r.Header.Get("X-User") }}
	h.registry = registry(t, h.options)
	h.forwarder = forwarder(t, wsupgrade.Options{Registry: h.registry, Dial: h.dial, Portable: true})
	begun := time.Now()
	steps := []func(){h.open, h.open, h.wait, h.peerEnds, h.close, h.abort, h.cancelRequest, h.burst, h.closeWhere, h.drain}
	for range h.c.Int(14) {
		step := h.c.Int(len(steps) + 8)
		if step >= len(steps) {
			step %= 3
		}
		h.mu.Lock()
		h.log = append(h.log, fmt.Sprintf("%v:", time.Since(begun)))
		h.mu.Unlock()
		steps[step]()
		synctest.Wait()
		h.check()
	}
	h.finish()
}

// logf adds to the line of the step.
func (h *registryHistory) logf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log[len(h.log)-1] += " " + fmt.Sprintf(format, args...)
}

// targetKey is the context key of the tunnel that is dialled for.
type targetKey struct{}

func (h *registryHistory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m := ctx.Value(targetKey{}).(*modelTunnel)
	return m.target.gatewaySide, nil
}

// admitted counts the tunnels and handshakes under way.
func (h *registryHistory) admitted() (all int, perUser map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	perUser = map[string]int{}
	for _, m := range h.tunnels {
		if !m.over {
			all++
			perUser[m.user]++
		}
	}
	return all, perUser
}

// admits reports whether the registry must admit a user.
func (h *registryHistory) admits(user string) bool {
	all, perUser := h.admitted()
	return !h.draining && (h.options.Max == 0 || all < h.options.Max) && (h.options.MaxPerKey == 0 || perUser[user] < h.options.MaxPerKey)
}

func (h *registryHistory) open() { h.start(choices.Pick(h.c, "a", "b", "c")) }

// burst opens several tunnels of one user at once, of which as many must be admitted as the bounds
// allow.
func (h *registryHistory) burst() {
	user := choices.Pick(h.c, "a", "b")
	for range 2 + h.c.Int(4) {
		h.start(user)
	}
}

// start begins a handshake. It is admitted or refused before anything blocks, so the order is that
// of the starts.
func (h *registryHistory) start(user string) {
	m := &modelTunnel{h: h, user: user, delay: choices.Pick(h.c, 0, 0, 10*time.Millisecond, 3*time.Second, time.Hour), refuses: h.c.Bool(8)}
	m.client, m.target = newModelPeer(h.c, m, false), newModelPeer(h.c, m, true)
	admitted := h.admits(user)
	h.logf("%s opens, its target responds after %v, refusing: %v; client %s, target %s; admitted: %v", user, m.delay, m.refuses, m.client.manner, m.target.manner, admitted)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), targetKey{}, m))
	m.cancel = cancel
	detached := h.c.Bool(2)
	if admitted {
		h.mu.Lock()
		h.tunnels = append(h.tunnels, m)
		h.mu.Unlock()
	}
	go m.forward(ctx, detached, admitted)
	go m.client.run()
	go m.target.run()
	synctest.Wait() // the next one is counted after this one
}

// forward is the handler.
func (m *modelTunnel) forward(ctx context.Context, detached, admitted bool) {
	in, err := http.NewRequestWithContext(ctx, "GET", "http://culvert.test/chat", nil)
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Key": key, "Sec-Websocket-Version": "13", "X-User": m.user} {
		in.Header.Set(name, value)
	}
	in.RemoteAddr = "192.0.2.1:1"
	w := &hijackable{ResponseRecorder: httptest.NewRecorder(), conn: m.client.gatewaySide}
	ended := func(*wsupgrade.Tunnel) { m.ended(nil) }
	var status int
	if detached {
		status, err = m.h.forwarder.Start(w, in, outboundTo(in, "target:80"), ended)
	} else {
		status, err = m.h.forwarder.Forward(w, in, outboundTo(in, "target:80"))
	}
	busy := asError(err) != nil && asError(err).Status() == http.StatusServiceUnavailable && asError(err).RetryAfter == m.h.options.RetryAfter
	if !admitted && !(busy && status == 0) {
		m.h.fail("%s was let in, and should not have been: %d %v", m.user, status, err)
	}
	if admitted && busy && !m.wasCut() {
		m.h.fail("%s was not let in: %v", m.user, err)
	}
	if !detached || status != http.StatusSwitchingProtocols || err != nil {
		m.ended(err)
	}
	if err != nil || status != http.StatusSwitchingProtocols {
		m.client.conn.Close()
		m.target.conn.Close()
		m.client.gatewaySide.Close()
		m.target.gatewaySide.Close()
	}
}

// wasCut reports whether the time of a drain has ended.
func (m *modelTunnel) wasCut() bool {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	for _, e := range m.h.ends {
		if e.what == "drain" && !e.deadline.IsZero() && !time.Now().Before(e.deadline) {
			return true
		}
	}
	return false
}

func (m *modelTunnel) ended(err error) {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	m.over, m.end, m.err = true, time.Now(), err
}

// wait waits for a random time.
func (h *registryHistory) wait() {
	d := choices.Pick(h.c, time.Second, 20*time.Millisecond, 3*time.Second, 6*time.Second, time.Minute, 2*time.Hour)
	h.logf("%v pass", d)
	time.Sleep(d)
}

// live chooses a tunnel that is listed, nil if there is none.
func (h *registryHistory) live() *modelTunnel {
	h.mu.Lock()
	defer h.mu.Unlock()
	var live []*modelTunnel
	for _, m := range h.tunnels {
		if m.tunnel != nil && !m.over {
			live = append(live, m)
		}
	}
	if len(live) == 0 {
		return nil
	}
	return live[h.c.Int(len(live))]
}

// peerEnds has a peer of a tunnel send a Close frame, or leave.
func (h *registryHistory) peerEnds() {
	if m := h.live(); m != nil {
		peer := choices.Pick(h.c, m.client, m.target)
		m.touch()
		if h.c.Bool(2) {
			h.logf("a peer of %d leaves", m.tunnel.ID)
			peer.conn.Close()
			return
		}
		h.logf("a peer of %d sends a Close frame", m.tunnel.ID)
		go peer.sendClose(1000)
	}
}

// touch records that the Close frames that the peers receive do not depend on the registry alone
// any more.
func (m *modelTunnel) touch() {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	m.touched = true
}

func (h *registryHistory) close() {
	if m := h.live(); m != nil {
		code := choices.Pick(h.c, wsupgrade.GoingAway, wsupgrade.ServiceRestart, 4000)
		h.logf("close %d with %d", m.tunnel.ID, code)
		m.recordClose(code)
		go h.registry.Get(m.tunnel.ID).Close(code, "")
	}
}

// recordClose records that the registry closes a tunnel. The first code counts.
func (m *modelTunnel) recordClose(code int) {
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	if m.code == 0 {
		m.code, m.closedAt = code, time.Now()
	}
}

func (h *registryHistory) abort() {
	if m := h.live(); m != nil {
		h.logf("abort %d", m.tunnel.ID)
		m.touch()
		m.tunnel.Abort()
	}
}

// cancelRequest ends the context of a request, as a server does when its client leaves. It does not
// end a tunnel that Start has opened.
func (h *registryHistory) cancelRequest() {
	h.mu.Lock()
	var m *modelTunnel
	if len(h.tunnels) > 0 {
		m = h.tunnels[h.c.Int(len(h.tunnels))]
		m.touched = true
	}
	h.mu.Unlock()
	if m != nil {
		h.logf("the context of a request of %s ends", m.user)
		m.cancel()
	}
}
