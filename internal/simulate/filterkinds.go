package simulate

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
)

// filterKinds lists all filters. A new one is added at the end of the plain ones, or of all.
var filterKinds []filterKind

// plainKinds is how many of the first filterKinds are chosen for any chain. The others are chosen with the requests they
// are for.
const plainKinds = 19

func init() { // not in the declaration: kinds refer to passage, which refers to them
	filterKinds = []filterKind{
		accessLogKind,
		combinedLogKind,
		requestIDKind,
		realIPKind,
		headersKind,
		compressKind,
		decompressKind,
		bodyLimitKind,
		concurrencyKind,
		timeoutKind,
		recoverKind,
		cachectlKind,
		recordsKind,
		onResponseKind,
		errorPagesKind,
		ambiguityKind,
		underscoreKind,
		mirrorKind,
		observeKind,
		kubeKind,
	}
}

// headersKind sets header fields of responses.
var headersKind = filterKind{
	name: "Headers",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		rule := filters.HeaderRule{Set: http.Header{"X-Rule": {"set"}}}
		switch p.A {
		case 1:
			rule.Status = cachectl.AddHeaderStatus
		case 2:
			rule.Status = filters.StatusClass(4)
		case 3:
			rule.ContentTypes = []string{"text/*"}
		case 4:
			rule.Remove = []string{"Cache-Control"}
		case 5:
			rule.Set, rule.Add = nil, http.Header{"X-Rule": {"added"}}
		}
		return filters.Headers(rule)
	},
	response: func(p FilterPlan, _ *hop, m *message) {
		if p.A == 1 && m.status/100 >= 4 || p.A == 2 && m.status/100 != 4 || p.A == 3 && m.media[:5] != "text/" {
			return
		}
		m.acts("Headers")
		switch before := m.header["X-Rule"]; {
		case p.A == 5 && before != "":
			m.header["X-Rule"] = before + ", added"
		case p.A == 5:
			m.header["X-Rule"] = "added"
		default:
			m.header["X-Rule"] = "set"
		}
		if p.A == 4 {
			m.header["Cache-Control"] = ""
		}
	},
}

// requestIDKind gives requests ids. The rules check that both sides see the same one.
var requestIDKind = filterKind{
	name: "RequestID",
	make: func(g *gateway, p FilterPlan) (culvert.Filter, error) {
		return filters.RequestID(filters.RequestIDOptions{Trust: p.A%2 == 1, New: g.newID})
	},
	response: func(_ FilterPlan, _ *hop, m *message) { m.acts("RequestID") },
}

// newID returns another id each time.
func (g *gateway) newID() string { return fmt.Sprint("id-", g.ids.Add(1)) }

// realIPKind finds the client behind trusted proxies. With an even option the clients are such proxies.
var realIPKind = filterKind{
	name: "RealIP",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		trusted := "203.0.113.0/24"
		if p.A%2 == 1 {
			trusted = "198.51.100.0/24"
		}
		return filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix(trusted)}})
	},
	request: func(p FilterPlan, q *hop) { q.trusted = p.A%2 == 1 },
}
