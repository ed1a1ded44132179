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

// evaluated is the value of a Map or a Geo for a request. A request uses few, so that it needs no hash
// table.
type evaluated struct {
	of      any // a pointer
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
		if v, ok := r.recall(m); ok {
			return v, true
		}
	}
	v := m.find(r).String(r)
	if !m.Volatile {
		r.remember(m, v)
	}
	return v, true
}

// recall returns the value that of has had for the request.
func (r *Request) recall(of any) (value string, ok bool) {
	for _, e := range r.values().maps {
		if e.of == of {
			if e.failure != nil {
				r.Fail(e.failure)
			}
			return e.value, true
		}
	}
	return "", false
}

// remember keeps the value of a Map or a Geo for the request.
func (r *Request) remember(of any, value string) {
	known := r.values()
	known.maps = append(known.maps, evaluated{of, value, known.failure})
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
