package wsupgrade_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/wsupgrade"
)

// modelPeer is a client or a target of a tunnel.
type modelPeer struct {
	m                 *modelTunnel
	toTarget          bool // it is the target
	conn, gatewaySide *duplex
	manner            string
	writing           sync.Mutex

	// Under m.h.mu.
	codes []int // of the Close frames that it has received
	sent  bool  // it has sent one
	gone  bool
}

// How a peer behaves that is sent a Close frame.
const (
	replies  = "replies"
	slow     = "replies after four seconds"
	stubborn = "does not reply"
	deaf     = "does not read"
)

func newModelPeer(c *choices.Choices, m *modelTunnel, target bool) *modelPeer {
	p := &modelPeer{m: m, toTarget: target, manner: choices.Pick(c, replies, replies, slow, stubborn, deaf)}
	p.conn, p.gatewaySide = newDuplex()
	return p
}

// run runs the peer until it ends. A deaf one reads its handshake all the same.
func (p *modelPeer) run() {
	r := bufio.NewReaderSize(p.conn, 16)
	if p.toTarget {
		if req, err := http.ReadRequest(r); err != nil || req == nil {
			p.conn.Close()
			return
		}
		if !p.respond() {
			p.conn.Close()
			return
		}
	} else if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		p.conn.Close()
		return
	}
	if p.manner == deaf {
		return
	}
	for {
		first, payload, err := readModelFrame(r)
		if err != nil {
			break
		}
		if first == closing {
			p.closed(int(binary.BigEndian.Uint16(append([]byte(payload), 0, 0))))
		}
	}
	p.m.h.mu.Lock()
	p.gone = true
	p.m.h.mu.Unlock()
	p.conn.Close()
}

// respond writes the target's response to the handshake.
func (p *modelPeer) respond() (switched bool) {
	time.Sleep(p.m.delay)
	header := switching
	if p.m.refuses {
		header = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
	}
	_, err := io.WriteString(p.conn, header)
	return err == nil && !p.m.refuses
}

// closed receives a Close frame.
func (p *modelPeer) closed(code int) {
	p.m.h.mu.Lock()
	p.codes = append(p.codes, code)
	sent := p.sent
	p.m.h.mu.Unlock()
	switch {
	case sent && p.toTarget:
		p.conn.Close() // both have sent one, and the server closes first
	case sent:
	case p.manner == slow:
		time.Sleep(4 * time.Second)
		p.sendClose(code)
	case p.manner == replies:
		p.sendClose(code)
	}
}

// sendClose sends a Close frame, if the peer has not sent one.
func (p *modelPeer) sendClose(code int) {
	p.m.h.mu.Lock()
	again := p.sent
	p.sent = true
	received := len(p.codes) > 0
	p.m.h.mu.Unlock()
	if again {
		return
	}
	payload := string(binary.BigEndian.AppendUint16(nil, uint16(code)))
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.toTarget {
		_, _ = io.WriteString(p.conn, frame(closing, payload))
		if received {
			p.conn.Close()
		}
		return
	}
	_, _ = io.WriteString(p.conn, masked(closing, payload))
}

func readModelFrame(r io.Reader) (first byte, payload string, err error) {
	header := make([]byte, 2)
	if _, err := io.ReadFull(r, header); err != nil {
		return 0, "", err
	}
	var key [4]byte
	if header[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, key[:]); err != nil {
			return 0, "", err
		}
	}
	p := make([]byte, header[1]&0x7F)
	if _, err := io.ReadFull(r, p); err != nil {
		return 0, "", err
	}
	for i := range p {
		p[i] ^= key[i&3]
	}
	return header[0], string(p), nil
}

// closeWhere closes the tunnels of a user, or some by their numbers.
func (h *registryHistory) closeWhere() {
	code := choices.Pick(h.c, wsupgrade.GoingAway, wsupgrade.ServiceRestart)
	odd := uint64(h.c.Int(3)) // 2: all
	e := &modelEnd{what: "closeWhere", started: time.Now()}
	h.mu.Lock()
	for _, m := range h.tunnels {
		if m.tunnel != nil && !m.over && (odd == 2 || m.tunnel.ID%2 == odd) {
			e.tunnels = append(e.tunnels, m)
		}
	}
	h.mu.Unlock()
	for _, m := range e.tunnels {
		m.recordClose(code)
	}
	ctx, cancel := h.deadline(e)
	h.logf("close where the number is %d of 2, with %d until %v", odd, code, e.deadline)
	h.await(e, cancel, func() error {
		return h.registry.CloseWhere(ctx, code, func(t *wsupgrade.Tunnel) bool { return odd == 2 || t.ID%2 == odd })
	})
}

// drain drains the registry.
func (h *registryHistory) drain() {
	code := choices.Pick(h.c, wsupgrade.GoingAway, wsupgrade.ServiceRestart)
	e := &modelEnd{what: "drain", started: time.Now()}
	h.mu.Lock()
	h.draining = true
	for _, m := range h.tunnels {
		if !m.over {
			e.tunnels = append(e.tunnels, m)
		}
	}
	h.mu.Unlock()
	for _, m := range e.tunnels {
		if m.tunnel != nil {
			m.recordClose(code)
		} else {
			m.touch() // it is closed when it opens, by the latest drain
		}
	}
	ctx, cancel := h.deadline(e)
	h.logf("drain with %d until %v", code, e.deadline)
	h.await(e, cancel, func() error { return h.registry.Drain(ctx, code) })
}

// deadline returns a context that ends later, has ended, or never ends.
func (h *registryHistory) deadline(e *modelEnd) (context.Context, context.CancelFunc) {
	d := choices.Pick(h.c, 0, time.Second, -1, 500*time.Millisecond, 10*time.Second, 5*time.Minute)
	if d == 0 {
		return context.WithCancel(context.Background())
	}
	e.deadline = time.Now().Add(max(d, 0))
	return context.WithDeadline(context.Background(), e.deadline)
}

// await runs a call that waits for tunnels to end.
func (h *registryHistory) await(e *modelEnd, cancel context.CancelFunc, call func() error) {
	h.mu.Lock()
	h.ends = append(h.ends, e)
	h.mu.Unlock()
	go func() {
		defer cancel()
		err := call()
		h.mu.Lock()
		defer h.mu.Unlock()
		e.err, e.returned = err, time.Now()
	}()
}

// check compares the registry with the model. Nothing can happen before time passes.
func (h *registryHistory) check() {
	h.mu.Lock()
	var last uint64
	listed := 0
	for t := range h.registry.All() {
		if t.ID <= last || h.registry.Get(t.ID) != t {
			h.errs = append(h.errs, fmt.Errorf("tunnel %d is listed after %d, and Get returns %v", t.ID, last, h.registry.Get(t.ID)))
		}
		last = t.ID
		listed++
		h.adopt(t)
	}
	live := 0
	for _, m := range h.tunnels {
		if m.tunnel == nil {
			continue
		}
		if !m.over {
			live++
		}
		if over := isClosed(m.tunnel.Done()); over != m.over || over != (h.registry.Get(m.tunnel.ID) == nil) {
			h.errs = append(h.errs, fmt.Errorf("tunnel %d: over %v, done %v, listed %v", m.tunnel.ID, m.over, over, h.registry.Get(m.tunnel.ID) != nil))
		}
		h.checkCodes(m)
	}
	if n := h.registry.Len(); n != listed || n != live {
		h.errs = append(h.errs, fmt.Errorf("Len is %d, %d are listed, %d are live", n, listed, live))
	}
	for _, e := range h.ends {
		h.checkEnd(e)
	}
	h.mu.Unlock()
}

// adopt finds the modelTunnel of a new tunnel.
func (h *registryHistory) adopt(t *wsupgrade.Tunnel) {
	if slices.ContainsFunc(h.tunnels, func(m *modelTunnel) bool { return m.tunnel == t }) {
		return
	}
	for _, m := range h.tunnels { // those that have switched are listed in the order of their responses
		if m.tunnel == nil && !m.over && wsupgrade.IsBetween(t, m.client.gatewaySide, m.target.gatewaySide) {
			m.tunnel = t
			return
		}
	}
	h.errs = append(h.errs, fmt.Errorf("tunnel %d belongs to no request", t.ID))
}

// checkCodes compares the Close frames that the peers have received with those that they must have
// received.
func (h *registryHistory) checkCodes(m *modelTunnel) {
	for _, p := range []*modelPeer{m.client, m.target} {
		if len(p.codes) > 1 {
			h.errs = append(h.errs, fmt.Errorf("tunnel %d: Close frames %d", m.tunnel.ID, p.codes))
		}
		if m.touched || m.over && m.err != nil {
			continue
		}
		for _, code := range p.codes {
			if code != m.code {
				h.errs = append(h.errs, fmt.Errorf("tunnel %d: Close frame %d, want %d", m.tunnel.ID, code, m.code))
			}
		}
		due := m.code != 0 && (m.over && m.end.Sub(m.closedAt) > 2*time.Second || !m.over && time.Since(m.closedAt) > 2*time.Second)
		if due && p.manner != deaf && len(p.codes) == 0 {
			h.errs = append(h.errs, fmt.Errorf("tunnel %d: no Close frame %d for a peer (target: %v)", m.tunnel.ID, m.code, p.toTarget))
		}
	}
}

// checkEnd compares when a call has returned, and with what, with when its tunnels have ended.
func (h *registryHistory) checkEnd(e *modelEnd) {
	over, end := true, e.started
	for _, m := range e.tunnels {
		over = over && m.over
		if m.over && m.end.After(end) {
			end = m.end
		}
	}
	due := !e.deadline.IsZero() && !time.Now().Before(e.deadline)
	switch {
	case e.returned.IsZero() && over:
		h.errs = append(h.errs, fmt.Errorf("a %s does not return, though its tunnels have ended", e.what))
	case e.returned.IsZero() && due:
		h.errs = append(h.errs, fmt.Errorf("a %s does not return when its context ends", e.what))
	case e.returned.IsZero():
	case !over:
		h.errs = append(h.errs, fmt.Errorf("a %s has returned, and left a tunnel", e.what))
	case !e.returned.Equal(end):
		h.errs = append(h.errs, fmt.Errorf("a %s has returned %v after the end of its last tunnel", e.what, e.returned.Sub(end)))
	case !e.deadline.IsZero() && end.After(e.deadline):
		h.errs = append(h.errs, fmt.Errorf("a %s has cut %v after the end of its context", e.what, end.Sub(e.deadline)))
	case e.err == nil && !e.deadline.IsZero() && e.returned.After(e.deadline), e.err != nil && (e.deadline.IsZero() || e.returned.Before(e.deadline)):
		h.errs = append(h.errs, fmt.Errorf("a %s until %v has returned %v at %v", e.what, e.deadline, e.err, e.returned))
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// finish ends the registry's tunnels, and waits for the peers.
func (h *registryHistory) finish() {
	for _, m := range h.tunnels {
		m.cancel()
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	h.mu.Lock()
	h.draining = true
	h.log = append(h.log, "the end:")
	h.mu.Unlock()
	go func() { _ = h.registry.Drain(ended, wsupgrade.GoingAway) }()
	time.Sleep(time.Minute)
	synctest.Wait()
	if n := h.registry.Len(); n != 0 {
		h.fail("%d tunnels are listed at the end", n)
	}
	if all, _ := h.admitted(); all != 0 {
		h.fail("%d tunnels have not ended", all)
	}
	for _, m := range h.tunnels {
		m.client.conn.Close()
		m.target.conn.Close()
	}
	time.Sleep(2 * time.Hour) // the targets that have not responded
}
