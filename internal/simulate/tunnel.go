package simulate

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The key and the accept value of RFC 6455 section 1.3.
const (
	wsKey = "dGhlIHNhbXBsZSBub25jZQ=="
)

// tunnel opens a WebSocket, sends one binary message up and reads one, and closes.
func (c *client) tunnel(e *ExchangePlan) {
	o := c.world.journal.outcome(e.Token)
	defer func() {
		o.Ended = time.Now()
		c.note(e, "tunnel: %d, %v", o.Status, o.Err)
	}()
	conn := c.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	header := upgradeHeader(e)
	for _, f := range e.Header {
		header += f[0] + ": " + f[1] + "\r\n"
	}
	for _, f := range e.requestFields() {
		header += f[0] + ": " + f[1] + "\r\n"
	}
	up := frames(websocket.BinaryMessage, e.up(), true)
	first := header + "\r\n" + e.Tunnel.posted()
	if e.Tunnel.Early {
		first += string(up[:len(up)/2])
		up = up[len(up)/2:]
	}
	_ = conn.SetDeadline(time.Now().Add(c.patience(e)))
	if _, err := io.WriteString(conn, first); err != nil {
		o.Err = err
		return
	}
	o.SentWhole = true
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	for err == nil && resp.StatusCode < 200 && resp.StatusCode != 101 {
		resp, err = http.ReadResponse(r, &http.Request{Method: "GET"})
	}
	if err != nil {
		c.fail(o, err)
		return
	}
	o.noteHeader(resp)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		o.Whole = true
		_, o.Err = io.Copy(io.Discard, resp.Body)
		return
	}
	o.Tunnel = &Checker{Content: e.down()}
	o.TunnelEnd = c.world.exchangeFrames(conn, r, e.Tunnel.clientEnd(), up, o.Tunnel)
}

// upgrade is the target's side.
func (t *target) upgrade(c *Conn, r *bufio.Reader, req *http.Request, plan *ExchangePlan, s *Sight) bool {
	s.Upgrade = true
	body, err := io.ReadAll(req.Body)
	if want := plan.Tunnel.posted(); err == nil && string(body) != want || !strings.HasPrefix(want, string(body)) {
		t.world.journal.Break("bytes", "%s read the body %q of an upgrade, want %q, %v", t.plan.Addr, body, want, err)
	}
	if err != nil {
		return false // the link has broken it off
	}
	switch {
	case plan.Tunnel.TargetRefuse != 0:
		refusal := ResponsePlan{Status: plan.Tunnel.TargetRefuse, Body: BodyPlan{Length: 0}}
		_, err := io.WriteString(c, responseHeader(plan, &refusal, s.Attempt, false))
		s.Responded = err == nil
		return err == nil
	case plan.Tunnel.BadAccept:
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n\r\n")
		return false
	}
	if bad := plan.Tunnel.BadSwitch; bad > 0 {
		t.world.journal.manners.Add("target: a 101 with "+badSwitches[bad-1].name, 1)
		_, _ = io.WriteString(c, badSwitches[bad-1].text(acceptOf(req.Header.Get("Sec-WebSocket-Key"))))
		return false
	}
	head := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + acceptOf(req.Header.Get("Sec-WebSocket-Key")) + "\r\n\r\n"
	if plan.Tunnel.Posted > 0 {
		head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: " + otherProtocol + "\r\nConnection: Upgrade\r\n\r\n"
	}
	down := frames(websocket.BinaryMessage, plan.down(), false)
	if plan.Tunnel.Joined {
		early := min(len(down), 1000)
		head += string(down[:early])
		down = down[early:]
	}
	if _, err := io.WriteString(c, head); err != nil {
		return false
	}
	s.Tunnel = &Checker{Content: plan.up()}
	err = t.world.exchangeFrames(c, r, plan.Tunnel.targetEnd(), down, s.Tunnel)
	s.TunnelEnd = err
	t.note(plan.Token, "tunnel ended with %d bytes: %v", s.Tunnel.Got, err)
	s.Responded = true
	return false
}

// exchangeFrames sends and reads frames concurrently, until both ends have sent a Close
// frame or the connection has ended.
func (w *world) exchangeFrames(c duplex, r *bufio.Reader, end tunnelEnd, out []byte, check *Checker) error {
	var mu sync.Mutex // of the Close frame
	closed := false
	sendClose := func() {
		mu.Lock()
		defer mu.Unlock()
		if !closed && !end.mute {
			closed = true
			_, _ = c.Write(closeFrame(end.masked))
		}
	}
	sent := make(chan error, 1)
	go func() {
		err := w.sendRaw(c, end.pace, out)
		if err == nil && end.first {
			sendClose()
		}
		sent <- err
	}()
	w.sleep(end.nap)
	err := readFrames(r, check)
	if check.Closed = err == nil; check.Closed { // by a Close frame
		if end.mute {
			_, _ = io.Copy(io.Discard, onlyReader{r})
		}
		if end.pace.Cut && end.pace.How == FaultSilence {
			c.Close() // ends the sending
		}
		if sendErr := <-sent; sendErr == nil {
			sendClose()
		} else {
			err = sendErr
		}
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, onlyReader{r})
		return err
	}
	c.Close()
	<-sent
	return err
}

// sendRaw writes the bytes of a tunnel at the pace of a plan.
func (w *world) sendRaw(c duplex, pace *BodyPlan, out []byte) error {
	piece := pace.Piece
	if piece == 0 {
		piece = len(out)
	}
	for at := 0; at < len(out); at += piece {
		if pace.Cut && int64(at) >= pace.CutAt {
			return w.cut(c, pace.How)
		}
		if _, err := c.Write(out[at:min(len(out), at+piece)]); err != nil {
			return err
		}
		w.sleep(pace.Pause)
	}
	return nil
}

// closeFrame returns a Close frame with 1000.
func closeFrame(masked bool) []byte {
	if masked {
		return []byte{0x88, 0x82, 0, 0, 0, 0, 3, 0xe8}
	}
	return []byte{0x88, 2, 3, 0xe8}
}

var errFrame = errors.New("no valid frame")
