package simulate

func init() { mutants = append(mutants, mutantsOfUpstream...) }

// mutantsOfUpstream are faults of the options of targets and groups.
var mutantsOfUpstream = []mutant{
	{"base path: slashes are joined", "proxy/picked.go", "	return base + path\n", "	return base + \"/\" + strings.TrimLeft(path, \"/\")\n"},
	{"base path: a retry keeps that of the target before", "proxy/picked.go", "joinPath(base, f.path)", "joinPath(base, u.Opaque)"},
	{"base path: it is unescaped", "upstream/parsetarget.go", "strings.TrimSuffix(u.EscapedPath(), \"/\")", "strings.TrimSuffix(u.Path, \"/\")"},
	{"base path: checks have it, too", "upstream/probe.go", "hostOf(addr) + path\n", "hostOf(addr) + g.set.Load().members[0].Path + path\n"},
	{"introduced: connections are the next client's", "upstream/transport.go", introducing, introducingAnyone},
	{"introduced: upgrades have no header", "upstream/dial.go", "	to.Preface = o.ProxyProtocol.preface(client.EndsFrom(ctx))\n", "	_ = client.EndsFrom\n"},
	{"introduced: a trusted proxy is the client", "internal/client/ends.go", "case info == nil:", "case true:"},
	{"introduced: RoundTrip keeps connections", "upstream/transport.go", "		DisableKeepAlives:      o.ProxyProtocol != 0 && o.Protocol == HTTP1, // it", "		DisableKeepAlives:      o.ProxyProtocol < 0, // it"},
	{"drained: requests are still sent", "upstream/member.go", "return m.Down || m.drained", "return m.Down"},
	{"drained: a target does not come back", "upstream/drained.go", "				m.state.drained = drained\n", "				m.state.drained = true\n"},
	{"drained: Set puts targets back", "upstream/group.go", "	g.install(full)\n	return nil\n", "	for _, st := range g.states {\n		st.drained = false\n	}\n	g.install(full)\n	return nil\n"},
	{"drained: checks go on", "upstream/check.go", "		if !m.isDown() {\n", "		if !m.Down {\n"},
	{"drained: it is forgotten with an address that is removed", "upstream/group.go", "(st.drained || st.hasFailed())", "st.hasFailed()"},
	{"floor: the last target is taken out", "upstream/floor.go", "c.left > 0 && (maxEjected", "(maxEjected"},
	{"floor: one more is out than the share", "upstream/floor.go", "c.ejected <= max(1,", "c.ejected <= 1+max(1,"},
	{"floor: Set leaves no target", "upstream/floor.go", "	g.keepFloor(s, nil)\n", ""},
	{"floor: a check leaves no target", "upstream/floor.go", "	g.keepFloor(g.set.Load(), st) //", "	//"},
	{"floor: the newest failure is forgiven", "upstream/floor.go", "m.checked.Load() < c.oldest.checked.Load()", "m.checked.Load() > c.oldest.checked.Load()"},
	{"panic: health always counts", "upstream/member.go", "return m.healthy() || !m.isDown() && m.set.panicking.Load()", "return m.healthy()"},
	{"panic: it does not end with a success", "upstream/member.go", "	m.resetFailures()\n	g.recount()\n", "	m.resetFailures()\n"},
	{"rate: one request more than FailMinRequests", "upstream/failrate.go", "all >= o.FailMinRequests", "all > o.FailMinRequests"},
	{"rate: successes do not count", "upstream/lease.go", "		m.countSuccess(&l.g.o)\n", ""},
	{"rate: outcomes count for longer than the window", "upstream/failrate.go", "int64(len(r.tenths)) < t.number", "3*int64(len(r.tenths)) < t.number"},
	{"rate: it is forgotten with an address that is removed", "upstream/member.go", " || s.rate.hasFailures()", ""},
	{"kinds: all count", "upstream/lease.go", "slices.Contains(g.o.FailKinds, kind)", "kind >= 0"},
	{"kinds: none counts", "upstream/lease.go", "g.o.FailKinds == nil || slices.Contains(g.o.FailKinds, kind)", "g.o.FailKinds == nil && kind >= 0"},
	{"outage: it does not grow", "upstream/member.go", "	return times * once\n", "	return once\n"},
	{"outage: it has no bound", "upstream/member.go", "	if times > most/once {\n", "	if most < 0 {\n"},
	{"outage: failures of earlier requests let it grow", "upstream/member.go", "		if again {\n", "		if again || true {\n"},
	{"outage: it does not shrink again", "upstream/floor.go", "m.ejections.Load()-good)", "m.ejections.Load()-0*good)"},
	{"outage: it is forgotten with an address that is removed", "upstream/member.go", " || s.ejections.Load() > 0", ""},
	{"guard: AllowAddr is not asked", "upstream/allowaddr.go", "err != nil || !allow(addr.Addr().Unmap())", "err != nil || !addr.IsValid()"},
	{"dynamic: one target more than MaxTargets", "upstream/dynamic.go", "len(d.groups) >= d.o.MaxTargets", "len(d.groups) > d.o.MaxTargets"},
}

const (
	introducing = `	return http1.NewPool(http1.Options{
		Addr: func(r *http.Request) (http1.Addr, error) {
			addr, err := addrOfRequest(r)
			if o.ProxyProtocol != 0 {
				addr.Preface = o.ProxyProtocol.preface(client.EndsOf(r))
			}
			return addr, err
		},
		Dial: func(ctx context.Context, addr http1.Addr) (net.Conn, error) {
`
	introducingAnyone = `	next := ""
	return http1.NewPool(http1.Options{
		Addr: func(r *http.Request) (http1.Addr, error) {
			addr, err := addrOfRequest(r)
			if o.ProxyProtocol != 0 {
				next = o.ProxyProtocol.preface(client.EndsOf(r))
			}
			return addr, err
		},
		Dial: func(ctx context.Context, addr http1.Addr) (net.Conn, error) {
			addr.Preface = next
`
)
