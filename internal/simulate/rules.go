package simulate

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing/synctest"
	"time"
)

// check looks at the journal when the history has ended.
func (w *world) check() {
	j := w.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range w.plan.Clients {
		c := &w.plan.Clients[i]
		for k := range c.Requests {
			e := &c.Requests[k]
			r := ruler{w: w, e: e, client: c, o: j.outcomes[e.Token], sights: j.sights[e.Token]}
			if r.o == nil {
				continue // its connection ended before
			}
			r.check()
			for _, b := range r.broken {
				j.broken = append(j.broken, b)
				j.lines = append(j.lines, line{time.Since(j.start), "RULE", b.String()})
			}
		}
	}
	for _, c := range w.network.Unclosed() {
		if c.local.String() == gatewayAddr || host(c.local.String()) == "192.0.2.2" {
			j.broken = append(j.broken, Broken{"left", fmt.Sprintf("the gateway has not closed %v to %v", c.local, c.remote)})
		}
	}
}

// ruler looks at one exchange.
type ruler struct {
	w      *world
	e      *ExchangePlan
	client *ClientPlan
	o      *Outcome
	sights []*Sight
	broken []Broken
}

func (r *ruler) fail(rule, format string, args ...any) {
	r.broken = append(r.broken, Broken{rule, fmt.Sprintf("#%d: ", r.e.Token) + fmt.Sprintf(format, args...)})
}

func (r *ruler) check() {
	r.belongs()
	r.complete()
	r.request()
	r.once()
	r.fields()
	r.tunnel()
}

// belongs: a response belongs to its request.
func (r *ruler) belongs() {
	o := r.o
	if o.Header == nil {
		return
	}
	if got := o.Header.Get("X-Token"); got != "" && got != fmt.Sprint(r.e.Token) {
		r.fail("belongs", "the response is that of #%s", got)
	}
	if o.Bad != nil {
		r.fail("bytes", "the response's body: %v", o.Bad)
	}
	if o.Attempt < 0 {
		r.own()
		return
	}
	if o.Attempt >= len(r.sights) {
		r.fail("belongs", "a response of attempt %d, of which no target knows", o.Attempt)
		return
	}
	if want := r.e.response(o.Attempt).Status; o.Tunnel == nil && r.client.Kind != WebSocket && o.Status != want {
		r.fail("belongs", "status %d, the target sent %d", o.Status, want)
	}
}

// own: what the gateway itself responds is an error, of a kind that a gateway gives.
func (r *ruler) own() {
	switch s := r.o.Status; s {
	case 400, 408, 413, 500, 502, 503, 504:
	case 101:
	default:
		r.fail("belongs", "status %d without a target's token", s)
	}
	if r.o.Status == 500 {
		r.fail("own errors", "the gateway responded 500")
	}
}

// complete: a response that looks whole is whole.
func (r *ruler) complete() {
	o := r.o
	if !o.Whole || o.Attempt < 0 || o.Tunnel != nil || r.client.Kind == WebSocket {
		return
	}
	plan := r.e.response(o.Attempt)
	want := plan.Body.Length
	if r.e.Method == http.MethodHead || plan.Status == 204 || plan.Status == 304 {
		want = 0
	}
	byClose := o.ByClose || plan.Framing == ByClose && !r.w.plan.Gateway.H2Targets
	if o.Got != want && !byClose {
		r.fail("whole", "the response looks whole with %d bytes of %d", o.Got, want)
	}
	if o.Got != want && byClose && r.sights[min(o.Attempt, len(r.sights)-1)].Responded && !r.faulty() && !o.ByClose {
		r.fail("whole", "the response has %d bytes of %d", o.Got, want)
	}
}

// faulty reports whether a link had a fault.
func (r *ruler) faulty() bool {
	f := len(r.client.Links.There)+len(r.client.Links.Back) > 0
	for _, t := range r.w.plan.Targets {
		f = f || len(t.Links.There)+len(t.Links.Back) > 0
	}
	return f
}

// request: targets see the request as it was sent, and no half one as a whole.
func (r *ruler) request() {
	for _, s := range r.sights {
		if want := r.e.Method + " " + r.e.target(); s.Line != want {
			r.fail("bytes", "%s saw %q, want %q", s.Target, s.Line, want)
		}
		if s.Bad != nil {
			r.fail("bytes", "%s read the request's body: %v", s.Target, s.Bad)
		}
		if !s.Whole || s.Upgrade {
			continue
		}
		if s.Got != r.e.Body.Length {
			r.fail("half request", "%s read %d bytes of %d as a whole body", s.Target, s.Got, r.e.Body.Length)
		}
		for _, f := range r.e.Trailer {
			if got := s.Trailer.Values(f[0]); !slices.Equal(got, []string{f[1]}) {
				r.fail("trailers", "%s saw %s: %q, want %q", s.Target, f[0], got, f[1])
			}
		}
	}
}

// once: a target sees a request once, unless it may be repeated.
func (r *ruler) once() {
	p := &r.w.plan.Gateway
	idempotent := slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}, r.e.Method) || r.e.Key
	may := idempotent || p.NonIdempotent
	if len(r.sights) > 1 && !may {
		r.fail("once", "%d targets saw a %s", len(r.sights), r.e.Method)
	}
	if most := len(r.w.plan.Targets) + 1; len(r.sights) > most {
		r.fail("once", "%d attempts, %d targets", len(r.sights), most-1)
	}
	if p.Tries == 1 && len(r.sights) > 2 {
		r.fail("once", "%d attempts with Tries 1", len(r.sights))
	}
}

// fields: end-to-end fields arrive as they were sent, in both directions.
func (r *ruler) fields() {
	for _, s := range r.sights {
		for _, f := range r.e.Header {
			if got := s.Header.Values(f[0]); !slices.Equal(got, []string{f[1]}) {
				r.fail("bytes", "%s saw %s: %q, want %q", s.Target, f[0], got, f[1])
			}
		}
		for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te"} {
			if v := s.Header.Get(name); v != "" && !(name == "Connection" && (strings.EqualFold(v, "upgrade") || v == "close")) {
				r.fail("hop by hop", "%s saw %s: %s", s.Target, name, v)
			}
		}
	}
	if r.o.Attempt < 0 || r.o.Header == nil || r.o.Tunnel != nil {
		return
	}
	for i, f := range r.e.Header {
		name := fmt.Sprintf("X-Back-%d", i)
		if got := r.o.Header.Values(name); !slices.Equal(got, []string{f[1]}) {
			r.fail("bytes", "the client saw %s: %q, want %q", name, got, f[1])
		}
	}
	r.responseTrailers()
}

func (r *ruler) responseTrailers() {
	plan := r.e.response(r.o.Attempt)
	bodyless := r.e.Method == http.MethodHead || plan.Status == 204 || plan.Status == 304
	if !r.o.Whole || bodyless || plan.Framing != Chunked && !r.w.plan.Gateway.H2Targets || r.client.Kind == HTTP10 || r.client.Kind == WebSocket {
		return
	}
	for _, f := range plan.Trailer {
		want := []string{f[1]}
		if plan.Forget {
			want = nil
		}
		if got := r.o.Trailer.Values(f[0]); !slices.Equal(got, want) {
			r.fail("trailers", "the client saw %s: %q, want %q", f[0], got, want)
		}
	}
}

// tunnel: bytes of a tunnel arrive in their order, and all of them if nothing was cut.
func (r *ruler) tunnel() {
	o := r.o
	if o.Tunnel == nil {
		return
	}
	if err := o.Tunnel.Err(); err != nil {
		r.fail("tunnel", "the client read %v", err)
	}
	if len(r.sights) == 0 || r.sights[o.Attempt0()].Tunnel == nil {
		r.fail("tunnel", "a 101 that no target sent")
		return
	}
	s := r.sights[o.Attempt0()]
	if err := s.Tunnel.Err(); err != nil {
		r.fail("tunnel", "%s read %v", s.Target, err)
	}
	if r.faulty() || r.e.Tunnel.Up.Cut || r.e.Tunnel.Down.Cut || o.LeftAlone || r.e.GiveUp > 0 {
		return
	}
	if !o.Tunnel.Whole() && r.e.Tunnel.ClientFirst == false {
		r.fail("tunnel", "the client read %d bytes of %d: %v", o.Tunnel.Got, o.Tunnel.Length, o.TunnelEnd)
	}
}

// Attempt0 is the attempt of a tunnel's handshake, of which there is one.
func (o *Outcome) Attempt0() int { return max(0, o.Attempt) }

// probe: after the last fault and some time the gateway serves as a new one would.
func (w *world) probe() {
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	w.gateway.change(ChangePlan{Kind: SetAll})
	for range 2 {
		c := &client{world: w, plan: &ClientPlan{Links: LinksPlan{Manners: Link{Window: 64 << 10, Delay: time.Millisecond}}}, name: "probe", addr: "198.51.100.99"}
		conn, err := c.dial()
		if err != nil {
			w.journal.Break("serves", "the gateway can't be dialled: %v", err)
			return
		}
		status, err := c.probe(conn)
		conn.Close()
		if status != http.StatusOK && !w.hasTargetFaults() {
			w.journal.Break("serves", "a probe sees %d, %v", status, err)
		}
		time.Sleep(time.Minute)
	}
}

// hasTargetFaults reports whether connections to targets may still have faults to come.
func (w *world) hasTargetFaults() bool {
	for _, t := range w.plan.Targets {
		if len(t.Links.There)+len(t.Links.Back)+len(t.Dials) > 0 {
			return true
		}
	}
	return false
}
