package simulate

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"time"

	"golang.org/x/net/http2"
)

// addFewStreams chooses histories with targets of HTTP/2 that allow one or two open streams
// (SETTINGS_MAX_CONCURRENT_STREAMS), and requests that come together. Some are sent before the setting is received. The
// program's trace delays some after they have selected a connection, so that they need another one. With a transport of
// the program's own they may wait for a stream instead.
func (p *Plan) addFewStreams(c *Choices) {
	if !p.Gateway.H2Targets || !c.Bool(3) {
		return
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		if !t.ByFrames {
			t.ByFrames, t.Frames = true, FramesPlan{Window: 65535, Step: 65535, Table: 4096}
		}
		t.Frames.Streams, t.Frames.Refuses = Pick[uint32](c, 1, 2), c.Bool(3)
	}
	g := &p.Gateway
	g.MaxConns = Pick(c, 0, 0, g.MaxConns) // or requests wait for a place
	g.HeaderTimeout = Pick(c, g.HeaderTimeout, seconds(5))
	g.Timeout = Pick(c, g.Timeout, g.Timeout, g.Timeout, seconds(5))
	if c.Bool(3) {
		p.waitForStreams()
	}
	for range 1 + c.Int(2) {
		p.crowd(c)
	}
}

// waitForStreams gives the gateway a transport of the program's own, whose requests wait for a stream of the existing
// connection. Options.Timeout and a disconnect of the client end the wait (proxy.Options.Transport). A panic on the
// transport's goroutines ends the program.
func (p *Plan) waitForStreams() {
	p.Gateway.Transport, p.Gateway.Strict, p.Gateway.Timeout = true, true, seconds(5)
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			p.Clients[i].Requests[k].DialPanics = 0
		}
	}
}

// strict is that transport.
func (g *gateway) strict() http.RoundTripper {
	p := &g.plan.Gateway
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		DialContext: g.group.Dial, Protocols: &protocols, DisableCompression: true, ResponseHeaderTimeout: max(0, p.HeaderTimeout), IdleConnTimeout: p.IdleTimeout,
		MaxResponseHeaderBytes: 64 << 10, // upstream.Options.MaxHeaderBytes, by default
		HTTP2:                  &http.HTTP2Config{StrictMaxConcurrentRequests: true, SendPingTimeout: pingInterval, PingTimeout: pingInterval, WriteByteTimeout: p.TargetWrite},
	}
	g.closers = append(g.closers, t.CloseIdleConnections)
	return t
}

// crowd adds a client of HTTP/2 whose requests come together, with responses that may be late.
func (p *Plan) crowd(c *Choices) {
	client := p.join(c, 2+c.Int(5))
	client.Kind = HTTP2
	for i := range client.Requests {
		e := &client.Requests[i]
		if c.Bool(3) {
			e.post(c)
		}
		e.Wait = time.Duration(c.Int(3)) * 4 * time.Millisecond
		e.TracePause = Pick(c, 0, 40*time.Millisecond)
		e.Responses[0].Delay = time.Duration(c.Int(20)) * Pick(c, time.Millisecond, 50*time.Millisecond, 500*time.Millisecond)
		if c.Bool(4) {
			e.GiveUp = time.Duration(1+c.Int(30)) * 100 * time.Millisecond
		}
	}
}

// beyond reports whether more streams are open than the target allows. The caller holds f.mu.
func (f *frameConn) beyond() bool {
	open := uint32(0)
	for _, s := range f.streams {
		if s.err == nil && !s.gone && !(s.ended && s.sentEnd) {
			open++
		}
	}
	return f.plan.Streams > 0 && open > f.plan.Streams
}

// refuseBeyond refuses a request that exceeds the allowed streams (RFC 9113 section 5.1.2), and reports whether it did.
func (t *target) refuseBeyond(s *frameStream, req *http.Request, seen *Sight, beyond bool) bool {
	if !beyond {
		return false
	}
	if !t.plan.Frames.Refuses {
		t.world.journal.manners.Add("target: serves a stream beyond its limit", 1)
		return false
	}
	t.world.journal.manners.Add("target: refuses a stream beyond its limit", 1)
	seen.Unprocessed = true
	s.resetWith(http2.ErrCodeRefusedStream)
	return true
}

// countWaits counts the requests that have waited for a stream: those that were sent some time after the gateway had a
// connection for them, or never.
func (r *ruler) countWaits() {
	for _, p := range r.w.journal.passages {
		if p.Token != r.e.Token || !r.w.plan.fewStreams() || r.faulty() {
			continue
		}
		for i := range p.Attempts {
			a := &p.Attempts[i]
			switch {
			case a.TimeToConnect == 0 || i != len(p.Attempts)-1:
			case len(r.sights) == 0 && a.Total-a.TimeToConnect > time.Second:
				r.w.journal.manners.Add("gateway: a request waits for a stream in vain", 1)
			case len(r.sights) == 1 && r.sights[0].At.Sub(r.w.journal.start)-a.Began-a.TimeToConnect > 200*time.Millisecond:
				r.w.journal.manners.Add("gateway: a request waits for a stream", 1)
			}
		}
	}
}

// fewStreams reports whether some targets allow only one or two open streams.
func (p *Plan) fewStreams() bool {
	for i := range p.Targets {
		if n := p.Targets[i].Frames.Streams; p.Targets[i].ByFrames && n > 0 && n <= 2 {
			return true
		}
	}
	return false
}

// pausing returns ctx with a trace that pauses when the transport has a connection.
func (g *gateway) pausing(ctx context.Context, token uint32) context.Context {
	e := g.journal.exchanges[token]
	if e == nil || e.TracePause == 0 {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { _ = sleep(ctx, e.TracePause) }})
}
