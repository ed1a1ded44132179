package simulate

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// passage: the filters have changed the request and its response as they are documented to, and in no other way.
func (r *ruler) passage() {
	if r.client.Kind == Malformed {
		return
	}
	p := r.w.passage(r.e, r.client.Kind)
	r.passedIn(p)
	r.buffers(p)
	if r.o.Header == nil || r.o.Tunnel != nil {
		return
	}
	if r.o.Attempt < 0 {
		r.refused(p)
	} else if r.o.Attempt < len(r.sights) && !r.client.Kind.upgrades() && r.sights[r.o.Attempt].Odd == nil {
		r.passedOut(p, p.response(r.o.Attempt))
	}
}

// passedIn checks requests as the targets saw them.
func (r *ruler) passedIn(p *passage) {
	for _, s := range r.sights {
		if p.last.refused {
			r.fail("refused", "%s saw a request that a filter refuses with %v", s.Target, p.last.may)
		}
		if p.last.over && s.Whole {
			r.fail("refused", "%s saw the whole of a body that is too long", s.Target)
		}
		if got, want := s.Header.Get("Content-Encoding"), p.last.coding; r.e.hasBody() && got != want {
			r.fail("passage", "%s saw Content-Encoding %q, want %q", s.Target, got, want)
		}
		if got, want := s.Header.Get("Accept-Encoding"), p.last.accept; got != want {
			r.fail("passage", "%s saw Accept-Encoding %q, want %q", s.Target, got, want)
		}
		if got, want := s.Header.Get("Accept"), p.last.wants; got != want {
			r.fail("passage", "%s saw Accept %q, want %q", s.Target, got, want)
		}
		if got := s.Header.Get("X_Under") != ""; got != p.last.under {
			r.fail("passage", "%s saw a field with an underscore: %v, want %v", s.Target, got, p.last.under)
		}
	}
	r.requestID(p)
	r.forwarded(p)
}

// requestID: both sides see the same id, and no other request has it.
func (r *ruler) requestID(p *passage) {
	if p.count("RequestID") != 1 {
		return
	}
	var ids []string
	for _, s := range r.sights {
		ids = append(ids, s.Header.Get("X-Request-Id"))
	}
	if r.o.Attempt >= 0 && r.o.Header != nil {
		ids = append(ids, r.o.Header.Get("X-Request-Id"))
	}
	for _, id := range ids {
		if id != ids[0] || !strings.HasPrefix(id, "id-") {
			r.fail("passage", "the ids are %q", ids)
			return
		}
	}
}

// count returns how many filters of a kind there are.
func (p *passage) count(name string) (n int) {
	for _, f := range p.plans {
		if filterKinds[f.Kind].name == name {
			n++
		}
	}
	return n
}

// refused checks a response that does not come from a target.
func (r *ruler) refused(p *passage) {
	status := r.o.Status
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		full := r.w.plan.Gateway.RequestBuffer > 0 && p.last.length > r.w.plan.Gateway.bufferSize(r.w.plan.Gateway.RequestBuffer)
		if !slices.Contains(p.last.may, status) && !full {
			r.fail("refused", "status %d, where no filter refuses", status)
		}
	}
	if slices.Contains(p.last.may, status) {
		r.w.journal.effects.Add(fmt.Sprint("refused with ", status), 1)
	}
}

// passedOut checks a response as its client saw it.
func (r *ruler) passedOut(p *passage, m *message) {
	o := r.o
	for _, name := range m.names {
		r.w.journal.effects.Add(name, 1)
	}
	if m.never {
		r.fail("passage", "the client saw a header at which a filter panicked, or of a response that a filter takes away")
	}
	if o.Status != m.instead {
		r.logged(m)
	}
	if m.loose {
		if m.cut && m.kube != nil && o.Whole && !o.ByClose && !r.bodyless(m) {
			r.fail("whole", "the response looks whole, though a filter can't read all of it")
		}
		if o.Collected && m.body != nil {
			m.coding = o.Header.Get("Content-Encoding")
			r.collected(p, m)
		}
		return
	}
	if o.Status != m.status {
		r.fail("passage", "status %d, want %d", o.Status, m.status)
	}
	if got := o.Header.Get("Content-Encoding"); got != m.coding {
		r.fail("passage", "the client saw Content-Encoding %q, want %q", got, m.coding)
	}
	if got := o.Header.Get("Content-Type"); got != m.media && !(m.status == 304 && got == "") { // net/http drops it there
		r.fail("passage", "the client saw Content-Type %q, want %q", got, m.media)
	}
	for name, want := range m.header {
		if got := strings.Join(o.Header.Values(name), ", "); got != want {
			r.fail("passage", "the client saw %s: %q, want %q", name, got, want)
		}
	}
	if length := o.Header.Get("Content-Length"); r.e.Method == http.MethodHead && m.body != nil && length != "" && length != fmt.Sprint(m.headLength()) {
		r.fail("passage", "a HEAD saw Content-Length %s, a GET would have %d", length, m.headLength())
	}
	if m.cut && o.Whole && !o.ByClose && !r.unknownEnd(m) && !r.bodyless(m) {
		r.fail("whole", "the response looks whole, though a filter has cut it")
	}
	if o.Collected && m.body != nil {
		r.collected(p, m)
	}
}

// bodyless reports whether the client receives no content.
func (r *ruler) bodyless(m *message) bool {
	return m.bodyless(&hop{e: r.e, method: r.e.Method})
}

// headLength returns the Content-Length that a GET would have, -1 if it is not known before the end of the content.
func (m *message) headLength() int64 {
	if m.length < 0 && m.coding == "" && m.body != nil {
		return int64(len(m.body()))
	}
	return m.length
}

// collected checks a content that filters have changed.
func (r *ruler) collected(p *passage, m *message) {
	o := r.o
	plain, ended := decoded(m.coding, o.Raw)
	want := m.body()
	if r.bodyless(m) {
		plain, want = o.Raw, nil
	}
	unknown := r.unknownEnd(m)
	if m.matches != nil && !r.bodyless(m) {
		if err := m.matches(plain, o.Whole && ended && !o.ByClose && !m.cut && !unknown); err != nil {
			r.fail("passage", "the client read %v", err)
		}
		return
	}
	if unknown && (m.edited || m.cut) && len(plain) != len(want) {
		return // half a record was taken for a whole one
	}
	if !bytes.HasPrefix(want, plain) {
		at := 0
		for at < len(plain) && at < len(want) && plain[at] == want[at] {
			at++
		}
		r.fail("passage", "the client read %d bytes, want %d, and byte %d differs: %.40q, want %.40q", len(plain), len(want), at, plain[at:], want[at:])
	}
	if !o.Whole || r.bodyless(m) {
		return
	}
	if passed := (unknown || m.half) && m.coding == r.e.response(o.Attempt).Coding; !ended && !o.ByClose && !passed {
		r.fail("whole", "the response looks whole, but %d bytes of %s are not", len(o.Raw), m.coding)
	}
	if len(plain) < len(want) && !o.ByClose && !unknown && !m.half {
		r.fail("whole", "the response looks whole with %d bytes of %d", len(plain), len(want))
	}
}

// unknownEnd reports whether the gateway can't know that the target's content is short. The end of a decoded content is known
// if it has at least one byte (filters.Decompress).
func (r *ruler) unknownEnd(m *message) bool {
	plan := r.e.response(r.o.Attempt)
	ends := m.ends && !(plan.Body.Cut && plan.Body.CutAt == 0)
	return plan.Framing == ByClose && !r.w.plan.Gateway.H2Targets && !m.replaced && !ends
}

// broken reports whether the client may see neither the whole response nor one of the gateway's own in its place.
func (m *message) broken() bool { return m.cut || m.aborted || m.never && m.instead == 0 }

// logged: logs have the status that the client saw.
func (r *ruler) logged(m *message) {
	if !r.o.Whole || r.o.ByClose || m.status != r.e.response(r.o.Attempt).Status {
		return
	}
	// The client had all before the target had ended, or before the gateway knew.
	left := !r.o.Ended.After(r.sights[r.o.Attempt].Ended) || r.w.plan.Gateway.H2Targets
	for _, b := range r.w.gateway.books {
		if list := b.statuses[r.e.Token]; len(list) > 0 && list[0] != 0 && list[0] != m.status && !(left && list[0] == 499) {
			r.fail("log", "%s has status %d, the client saw %d", b.name, list[0], m.status)
		}
	}
}

// forwarded: targets see the address of a request's client, and never one that the client has forged.
func (r *ruler) forwarded(p *passage) {
	if p.count("RealIP") > 1 || !r.w.plan.exact() { // all clients have one address in real time
		return
	}
	want := r.address()
	if p.last.trusted && r.e.Forwarded {
		want = forwardedFor + ", " + want
	}
	for _, s := range r.sights {
		if got := s.Header.Get("X-Forwarded-For"); got != want {
			r.fail("passage", "%s saw X-Forwarded-For %q, want %q", s.Target, got, want)
		}
	}
}

// address returns the client's address.
func (r *ruler) address() string {
	for i := range r.w.plan.Clients {
		if &r.w.plan.Clients[i] == r.client {
			return clientAddr(i)
		}
	}
	return ""
}

// clientAddr returns the address of the ith client.
func clientAddr(i int) string { return fmt.Sprintf("198.51.100.%d", i+1) }

// forwardedFor is the X-Forwarded-For of some clients: a client, and a proxy in front of them.
const forwardedFor = "192.0.2.77, 198.51.100.50"
