package simulate

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// runFrames sends the requests over one connection of HTTP/2, by frames. All streams are open at once.
func (c *client) runFrames() {
	conn := c.dial()
	if conn == nil {
		return
	}
	p := &c.plan.Frames
	f := newFrameConn(c.world, c.name, p, conn)
	defer f.close()
	if f.waitReady() != nil {
		return // its link has a fault
	}
	if c.plan.Kind == WebSocket2 && !f.connect {
		c.world.journal.Break("frames", "%s: the gateway does not offer extended CONNECT", c.name)
	}
	stop := make(chan struct{})
	var wg, streams sync.WaitGroup
	wg.Go(func() { f.ping(stop) })
	wg.Go(func() { f.changeSettings(stop) })
	for i := range c.plan.Requests {
		e := &c.plan.Requests[i]
		c.world.sleep(e.Wait / 4)
		f.openBad(i, scheme(c.plan))
		s := f.openFor(e, c.plan)
		if s == nil {
			break
		}
		o := c.world.journal.outcome(e.Token)
		streams.Go(func() {
			if c.plan.Kind == WebSocket2 {
				c.tunnel2(s, e, o)
			} else {
				c.frames(s, e, o)
			}
		})
		if p.GoAway == i+1 {
			c.world.journal.manners.Add("frames: GOAWAY", 1)
			f.goAway()
			break
		}
	}
	streams.Wait()
	f.checkBad()
	close(stop)
	wg.Wait()
}

// openFor opens the stream of a request.
func (f *frameConn) openFor(e *ExchangePlan, p *ClientPlan) *frameStream {
	return f.open(requestFields(e, p), p.Kind != WebSocket2 && !e.hasBody())
}

// requestFields returns the header section of a request.
func requestFields(e *ExchangePlan, p *ClientPlan) []hpack.HeaderField {
	fields := []hpack.HeaderField{{Name: ":method", Value: e.Method}, {Name: ":scheme", Value: scheme(p)},
		{Name: ":authority", Value: "gateway.test"}, {Name: ":path", Value: e.target()}}
	add := func(name, value string) {
		fields = append(fields, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
	}
	if p.Kind == WebSocket2 {
		fields[0].Value = http.MethodConnect
		add(":protocol", "websocket")
		add("Sec-WebSocket-Version", "13")
	}
	for _, f := range e.Header {
		add(f[0], f[1])
	}
	if p.Kind != WebSocket2 {
		for _, f := range e.requestFields() {
			add(f[0], f[1])
		}
	}
	if e.Key {
		add("Idempotency-Key", "k")
	}
	if p.Kind != WebSocket2 && e.hasBody() {
		if e.Expect {
			add("Expect", "100-continue")
		}
		if !e.Body.Chunked {
			add("Content-Length", strconv.FormatInt(e.requestWire().Size(), 10))
		}
		for _, f := range e.Trailer {
			add("Trailer", f[0])
		}
	}
	return fields
}

// frames runs one exchange.
func (c *client) frames(s *frameStream, e *ExchangePlan, o *Outcome) {
	c.note(e, "%s %s, body of %d bytes on stream %d", e.Method, e.target(), e.Body.Length, s.id)
	_ = s.SetDeadline(time.Now().Add(c.patience(e)))
	sent := make(chan bool, 1)
	go func() { sent <- c.sendFrames(s, e) }()
	defer func() {
		s.Close()
		o.SentWhole, o.Spoilt = <-sent, s.conn.hasSpoilt()
		o.Ended = time.Now()
		c.note(e, "saw %d of attempt %d, %d bytes, whole %v, %v", o.Status, o.Attempt, o.Got, o.Whole, o.Err)
	}()
	if err := s.response(); err != nil {
		c.failFrames(o, err)
		return
	}
	s.conn.mu.Lock()
	resp := &http.Response{StatusCode: s.status, Header: s.header, Body: io.NopCloser(s)}
	interim := s.interim
	s.conn.mu.Unlock()
	for _, h := range interim {
		o.Interim++
		status, _ := strconv.Atoi(h.Get("Status"))
		o.Continued = o.Continued || status == http.StatusContinue
		c.checkInterim(&http.Response{StatusCode: status, Header: h}, e)
	}
	o.noteHeader(resp)
	if !c.readBody(resp, e, o) {
		c.failFrames(o, o.Err)
		return
	}
	s.conn.mu.Lock()
	o.Trailer = s.trailer
	s.conn.mu.Unlock()
}

// failFrames records why a response ends. A stream that the server resets with NO_ERROR has had its whole response
// (RFC 9113 section 8.1): the reset only refuses the rest of the request.
func (c *client) failFrames(o *Outcome, err error) {
	o.Err = err
	if o.LeftAlone = errors.Is(err, os.ErrDeadlineExceeded); o.LeftAlone {
		c.world.journal.manners.Add("frames: RST_STREAM", 1)
		c.world.journal.faults.Add("client left", 1)
	}
}

// sendFrames sends the body of a request, and reports whether all of it was sent.
func (c *client) sendFrames(s *frameStream, e *ExchangePlan) bool {
	if !e.hasBody() {
		return true
	}
	if !c.world.waitToSend(e, s.expectation, s.Closed()) {
		return false
	}
	plan := e.Body
	if plan.Chunked && plan.How == FaultFIN {
		plan.How = FaultReset // without a length, a clean end would be that of a whole body
	}
	if err := c.world.sendBody(s, &plan, e.requestWire(), false); err != nil {
		c.note(e, "body: %v", err)
		return false
	}
	return s.end(e.Trailer) == nil
}

// ping sends the plan's PINGs.
func (f *frameConn) ping(stop chan struct{}) {
	for range f.plan.Pings {
		f.mu.Lock()
		_ = f.framer.WritePing(false, [8]byte{1})
		f.mu.Unlock()
		f.world.journal.manners.Add("frames: PING", 1)
		if !f.pause(stop, time.Millisecond) {
			return
		}
	}
}

// changeSettings changes the windows of streams according to the plan.
func (f *frameConn) changeSettings(stop chan struct{}) {
	for _, change := range f.plan.Changes {
		if !f.pause(stop, change.After) {
			return
		}
		f.mu.Lock()
		f.settings(change.Window)
		f.mu.Unlock()
		f.world.journal.manners.Add("frames: SETTINGS in between", 1)
	}
}

// pause sleeps, and reports whether the connection is still in use.
func (f *frameConn) pause(stop chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// goAway sends a GOAWAY: there will be no further stream.
func (f *frameConn) goAway() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.framer.WriteGoAway(0, http2.ErrCodeNo, nil)
}

// tunnel2 opens a WebSocket on a stream by an extended CONNECT (RFC 8441).
func (c *client) tunnel2(s *frameStream, e *ExchangePlan, o *Outcome) {
	defer func() {
		s.Close()
		o.Ended = time.Now()
		c.note(e, "tunnel on stream %d: %d, %v", s.id, o.Status, o.Err)
	}()
	up := frames(2, e.up(), true)
	_ = s.SetDeadline(time.Now().Add(c.patience(e)))
	o.SentWhole = true
	early := 0
	if e.Tunnel.Early {
		early = min(len(up)/2, 16<<10)
		if _, err := s.Write(up[:early]); err != nil {
			c.failFrames(o, err)
			return
		}
	}
	if err := s.response(); err != nil {
		c.failFrames(o, err)
		return
	}
	s.conn.mu.Lock()
	resp := &http.Response{StatusCode: s.status, Header: s.header}
	s.conn.mu.Unlock()
	o.noteHeader(resp)
	r := bufio.NewReader(s)
	if resp.StatusCode < 200 || resp.StatusCode > 299 { // any 2xx opens a tunnel (RFC 9110 section 9.3.6)
		o.Whole = true
		_, o.Err = io.Copy(io.Discard, r)
		return
	}
	o.Tunnel = &Checker{Content: e.down()}
	o.TunnelEnd = c.world.exchangeFrames(s, r, e.Tunnel.clientEnd(), up[early:], o.Tunnel)
}
