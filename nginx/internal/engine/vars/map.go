package vars

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// Map is a map block: a variable whose value depends on another text. It is evaluated when it is
// first used, once for each request unless it is volatile.
type Map struct {
	// Source is the text that is looked up.
	Source Value
	// Volatile evaluates it anew for each use.
	Volatile bool
	// Exact holds the plain keys, in lower case.
	Exact map[string]Value
	// Hosts holds the keys with a wildcard; nil without "hostnames".
	Hosts interface {
		Find(host string) (Value, bool)
	}
	// Patterns are the regular expressions, in order.
	Patterns []Pattern
	// Default is the value if nothing matches.
	Default Value
}

// evaluated is a map's value for a request. A request uses few maps, so that it needs no hash
// table.
type evaluated struct {
	of      *Map
	value   string
	failure error // the value is not known: each use makes the request fail
}

// Pattern is a regular expression of a map.
type Pattern struct {
	Regexp *pcre.Regexp
	Value  Value
}

func (m *Map) get(r *Request) (string, bool) {
	if !m.Volatile {
		for _, e := range r.values().maps {
			if e.of == m {
				if e.failure != nil {
					r.Fail(e.failure)
				}
				return e.value, true
			}
		}
	}
	v := m.find(r).String(r)
	if !m.Volatile {
		known := r.values()
		known.maps = append(known.maps, evaluated{m, v, known.failure})
	}
	return v, true
}

// find looks up in nginx's order: plain keys, wildcards, regular expressions
// (ngx_http_map_find).
func (m *Map) find(r *Request) Value {
	source := m.Source.String(r)
	key := strings.ToLower(source)
	if m.Hosts != nil {
		key = strings.TrimSuffix(key, ".")
	}
	if v, ok := m.Exact[key]; ok {
		return v
	}
	if m.Hosts != nil {
		if v, ok := m.Hosts.Find(key); ok {
			return v
		}
	}
	for _, p := range m.Patterns {
		groups, err := p.Regexp.Find(source)
		if err != nil {
			r.Fail(err)
			return m.Default
		}
		if groups != nil {
			r.Capture(groups, p.Regexp.Names())
			return p.Value
		}
	}
	return m.Default
}
