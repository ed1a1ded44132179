package vars

import (
	"net/netip"
	"slices"
)

// Geo is a geo block: a variable whose value depends on an address
// (ngx_http_geo_module.c). It is evaluated when it is first used, once for each request unless it is volatile.
type Geo struct {
	// Source is the address that is looked up.
	Source Getter
	// Trusted are proxies: if the address is one of theirs, the one in X-Forwarded-For is looked
	// up instead.
	Trusted []netip.Prefix
	// Recursive selects the last address of X-Forwarded-For that is not trusted instead of the
	// last one.
	Recursive bool
	// Volatile evaluates it anew for each use.
	Volatile bool
	// Default is the value of an address in no network.
	Default string

	networks map[netip.Prefix]string
	bits     []int // the lengths of prefixes, the longest first
	ranges   []geoRange
}

type geoRange struct {
	from, to netip.Addr
	value    string
}

// AddNetwork sets a network's value and reports whether it had none.
func (g *Geo) AddNetwork(p netip.Prefix, value string) bool {
	if g.networks == nil {
		g.networks = map[netip.Prefix]string{}
	}
	_, had := g.networks[p]
	g.networks[p] = value
	if !slices.Contains(g.bits, p.Bits()) {
		g.bits = append(g.bits, p.Bits())
		slices.SortFunc(g.bits, func(a, b int) int { return b - a })
	}
	return !had
}

// RemoveNetwork removes a network.
func (g *Geo) RemoveNetwork(p netip.Prefix) { delete(g.networks, p) }

// AddRange sets the value of the addresses from one to another, also of those that had another one: the rest of their
// ranges is one or two ranges of its own.
func (g *Geo) AddRange(from, to netip.Addr, value string) {
	var rest []geoRange
	for _, r := range g.ranges {
		if r.to.Less(from) || to.Less(r.from) {
			rest = append(rest, r)
			continue
		}
		if r.from.Less(from) {
			rest = append(rest, geoRange{r.from, from.Prev(), r.value})
		}
		if to.Less(r.to) {
			rest = append(rest, geoRange{to.Next(), r.to, r.value})
		}
	}
	g.ranges = append(rest, geoRange{from, to, value})
}

// RemoveRange removes a range of AddRange, or the rest of it.
func (g *Geo) RemoveRange(from, to netip.Addr) {
	g.ranges = slices.DeleteFunc(g.ranges, func(r geoRange) bool { return r.from == from && r.to == to })
}

func (g *Geo) get(r *Request) (string, bool) {
	if g.Volatile {
		return g.evaluate(r), true
	}
	v, ok := r.recall(g)
	if !ok {
		v = g.evaluate(r)
		r.remember(g, v)
	}
	return v, true
}

func (g *Geo) evaluate(r *Request) string {
	text, _ := g.Source(r)
	a, err := netip.ParseAddr(text)
	if err != nil {
		a = netip.AddrFrom4([4]byte{255, 255, 255, 255}) // that of a unix socket, as in nginx
	}
	a = a.Unmap().WithZone("")
	if len(g.Trusted) > 0 {
		a = Forwarded(netip.AddrPortFrom(a, 0), r.HTTP.Header["X-Forwarded-For"], g.Trusted, g.Recursive).Addr().Unmap()
	}
	return g.find(a)
}

func (g *Geo) find(a netip.Addr) string {
	for _, bits := range g.bits {
		if p, err := a.Prefix(bits); err == nil {
			if v, ok := g.networks[p]; ok {
				return v
			}
		}
	}
	for _, r := range slices.Backward(g.ranges) {
		if r.from.Compare(a) <= 0 && a.Compare(r.to) <= 0 {
			return r.value
		}
	}
	return g.Default
}

// DeclareGeo declares g as a variable.
func (s *Scope) DeclareGeo(name string, g *Geo) { s.define(name, g.get) }
