package simulate

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
)

// addSpelt chooses histories in which header fields keep the names that the peers have spelt, and their order
// (proxy.Options.KeepFieldNames), and requests and responses whose names are not canonical.
func (p *Plan) addSpelt(c *Choices) {
	if !c.Bool(8) {
		return
	}
	p.Gateway.KeepsNames, p.Gateway.Server = true, true
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			e := &p.Clients[i].Requests[k]
			if e.Spelt = p.Clients[i].Kind == HTTP1 && c.Bool(2); e.Spelt && len(e.Header) == 0 {
				e.Header = [][2]string{{"X-Sent-0", "a"}, {"X-Sent-1", "b"}}
			}
		}
	}
}

// spell returns the name of a field as a peer spells it.
func (e *ExchangePlan) spell(name string) string {
	if !e.Spelt {
		return name
	}
	first, rest, _ := strings.Cut(name, "-")
	return strings.ToLower(first) + "-" + strings.ToUpper(rest)
}

// tap keeps the bytes of a header section.
type tap struct {
	on  bool
	got []byte
}

// keep is called with what was read.
func (t *tap) keep(p []byte) {
	if t.on {
		t.got = append(t.got, p...)
	}
}

// start begins a header section that r reads next.
func (t *tap) start(r *bufio.Reader) {
	received, _ := r.Peek(r.Buffered())
	t.on, t.got = true, append(t.got[:0], received...)
}

// names ends the header section, and returns the names of its fields.
func (t *tap) names(r *bufio.Reader) (names []string) {
	t.on = false
	lines := strings.Split(string(t.got[:len(t.got)-r.Buffered()]), "\r\n")
	for _, line := range lines[1:] {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, name)
		}
	}
	return names
}

// spelt: fields arrive with the names that the client and the target have spelt, in their order.
func (r *ruler) spelt() {
	g := &r.w.plan.Gateway
	if !g.KeepsNames || g.H2Targets || r.byTransport() || r.client.Kind != HTTP1 {
		return
	}
	var sent, back []string
	for i, f := range r.e.Header {
		if f[0] != deletedField || !g.Hooks.Rewrite {
			sent = append(sent, r.e.spell(f[0]))
		}
		back = append(back, r.e.spell(fmt.Sprintf("X-Back-%d", i)))
	}
	for _, s := range r.sights {
		r.sameNames(s.Target, s.Names, sent)
	}
	if r.o.Attempt >= 0 && r.o.Header != nil && r.e.Page == PageNone {
		r.sameNames("the client", r.o.Names, back)
	}
}

// sameNames: of the names that a peer saw, those of want are there as they are, and in that order.
func (r *ruler) sameNames(who string, saw, want []string) {
	var own []string
	for _, name := range saw {
		if slices.ContainsFunc(want, func(w string) bool { return strings.EqualFold(w, name) }) {
			own = append(own, name)
		}
	}
	if !slices.Equal(own, want) {
		r.fail("spelt", "%s saw the fields %q, want %q", who, own, want)
	} else if r.e.Spelt && len(want) > 0 {
		r.w.journal.manners.Add("names of fields that are kept", 1)
	}
}

// FormatHeader implements clientside.Formatter.
func (g *guarded) FormatHeader(f fieldnames.Format) { clientside.FormatHeader(g.w, f) }

// HeaderFormat implements clientside.Formatter.
func (g *guarded) HeaderFormat() fieldnames.Format { return clientside.HeaderFormat(g.w) }
