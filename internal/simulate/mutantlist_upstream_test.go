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
