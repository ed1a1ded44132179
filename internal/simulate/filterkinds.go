package simulate

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// filterKinds are all filters. A new one goes to the end.
var filterKinds []filterKind

func init() { // not in the declaration: kinds refer to passage, which refers to them
	filterKinds = []filterKind{
		{name: "AccessLog", make: func(*gateway, FilterPlan) (filters.Filter, error) {
			return filters.AccessLog(slog.New(slog.NewTextHandler(io.Discard, nil))), nil
		}},
		{name: "CombinedLog", make: func(*gateway, FilterPlan) (filters.Filter, error) { return filters.CombinedLog(io.Discard), nil }},
		requestIDKind,
		{name: "RealIP", make: func(*gateway, FilterPlan) (filters.Filter, error) {
			return filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
		}},
		headersKind,
		compressKind,
		decompressKind,
		bodyLimitKind,
		{name: "Concurrency", make: func(*gateway, FilterPlan) (filters.Filter, error) {
			return filters.Concurrency(filters.ConcurrencyOptions{Max: 3, Queue: 3})
		}},
		{name: "Timeout", make: func(g *gateway, _ FilterPlan) (filters.Filter, error) {
			return filters.Timeout(g.plan.takes(20 * time.Second))
		}},
		{name: "Recover", make: func(*gateway, FilterPlan) (filters.Filter, error) {
			return filters.Recover(slog.New(slog.NewTextHandler(io.Discard, nil))), nil
		}},
		cachectlKind,
		recordsKind,
		{name: "OnResponse", make: func(*gateway, FilterPlan) (filters.Filter, error) {
			return filters.OnResponse(filters.ResponseHooks{}), nil
		}},
		errorPagesKind,
		ambiguityKind,
		underscoreKind,
	}
}

// headersKind sets fields of responses.
var headersKind = filterKind{
	name: "Headers",
	make: func(_ *gateway, p FilterPlan) (filters.Filter, error) {
		rule := filters.HeaderRule{Status: filters.AnyStatus, Set: http.Header{"X-Rule": {"set"}}}
		switch p.A {
		case 1:
			rule.Status = nil
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

// requestIDKind gives requests ids, of which the rules look whether they are the same on both sides.
var requestIDKind = filterKind{
	name: "RequestID",
	make: func(g *gateway, p FilterPlan) (filters.Filter, error) {
		return filters.RequestID(filters.RequestIDOptions{Trust: p.A%2 == 1, New: g.newID})
	},
	response: func(_ FilterPlan, _ *hop, m *message) { m.acts("RequestID") },
}

// newID returns another id each time.
func (g *gateway) newID() string { return fmt.Sprint("id-", g.ids.Add(1)) }
