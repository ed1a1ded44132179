package simulate

import (
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
)

// cachectlKind applies rules about caching.
var cachectlKind = filterKind{
	name: "cachectl",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		switch p.A {
		case 1:
			return cachectl.New(cachectl.AllErrorPages())
		case 2:
			return cachectl.New(cachectl.CapErrors(30 * time.Second))
		case 3:
			return cachectl.FreeStuck(cachectl.Status(404), time.Now().Add(24*time.Hour))
		}
		return cachectl.New(cachectl.ErrorPages())
	},
	response: func(p FilterPlan, _ *hop, m *message) {
		explicit := map[string]bool{"max-age=60": true, "max-age=30": true, "no-store": true, "no-cache": true, "private, no-cache": true}
		switch cache := m.header["Cache-Control"]; {
		case p.A == 3:
			if m.status == 404 {
				m.acts("cachectl")
				m.header["Clear-Site-Data"] = strings.TrimPrefix(m.header["Clear-Site-Data"]+`, "cache"`, ", ")
			}
		case m.status < 400:
		case p.A == 2 && cache == "max-age=60":
			m.acts("cachectl")
			m.header["Cache-Control"] = "max-age=30"
		case p.A == 1 || !explicit[cache] && m.header["Expires"] == "": // an Expires of another filter is explicit, too
			m.acts("cachectl")
			m.header["Cache-Control"], m.header["Expires"] = "private, no-cache", "Thu, 01 Jan 1970 00:00:01 GMT"
		}
	},
}

// ambiguityKind refuses requests that are ambiguous in the ways that its options choose.
var ambiguityKind = filterKind{
	name: "RefuseAmbiguous",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		return filters.RefuseAmbiguous(p.ambiguity()), nil
	},
	request: func(p FilterPlan, q *hop) {
		// What is ambiguous in the paths and queries that clients send.
		of := map[string]filters.Ambiguity{
			"//b%2Fc":       filters.EmptySegments | filters.EncodedSlash,
			"/%7euser/../x": filters.DotSegments,
			"/a;v=1/":       filters.PathParameters,
			"a;b&c=%zz":     filters.Semicolons | filters.BadEscapes,
			"/a":            0,
			"/%E2%82%AC":    0,
			"a=1&b=2":       0,
			"=&&%20+":       0,
			"a=1&b=2&%61=3": filters.RepeatedParameters,
		}
		found := of[q.e.Path] | of[q.e.Query]
		if q.e.Slashes {
			found |= filters.EmptySegments
		}
		if q.under {
			found |= filters.UnderscoreNames
		}
		if found&p.ambiguity() != 0 {
			q.refuse(http.StatusBadRequest)
		}
	},
}

// ambiguity returns the kinds of ambiguity that a RefuseAmbiguous refuses.
func (p FilterPlan) ambiguity() filters.Ambiguity {
	return [filterOptions]filters.Ambiguity{filters.AnyAmbiguity, filters.EncodedSlash, filters.DotSegments,
		filters.Semicolons | filters.BadEscapes, filters.UnderscoreNames, filters.PathParameters | filters.EmptySegments}[p.A]
}

// underscoreKind drops fields with an underscore in their name.
var underscoreKind = filterKind{
	name:    "DropUnderscoreNames",
	make:    func(*gateway, FilterPlan) (culvert.Filter, error) { return filters.DropUnderscoreNames(), nil },
	request: func(_ FilterPlan, q *hop) { q.under = false },
}
