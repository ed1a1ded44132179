package vars

import (
	"fmt"
	"net/http"
	"strings"
)

// Scope knows the variables of a configuration: nginx's own, its maps, and the
// names of its regular expressions' groups. Declare everything before the
// first Compile; variables may be used above their definition.
type Scope struct {
	modules  map[string]Getter // nginx's own, in addition to those of base
	base     func(name string) Getter
	families []family
	declared map[string]Getter
	sets     map[string]bool // those of declared that SetVariable sets
}

// NewScope returns a Scope with nginx's own variables: those of this package, and those of modules.
func NewScope(modules map[string]Getter) *Scope {
	return &Scope{modules: modules, base: builtin, families: requestFamilies, declared: map[string]Getter{}, sets: map[string]bool{}}
}

// NewStreamScope returns a Scope with the variables of nginx's stream modules: those that this package has for a session of
// stream, and those of modules. tlv returns "proxy_protocol_tlv_…" by what follows the underscore.
func NewStreamScope(modules map[string]Getter, tlv func(name string) Getter) *Scope {
	families := []family{{"proxy_protocol_tlv_", tlv}}
	return &Scope{modules: modules, base: streamBuiltin, families: families, declared: map[string]Getter{}, sets: map[string]bool{}}
}

// Builtin reports whether a variable is one of nginx's own.
func (s *Scope) Builtin(name string) bool { return s.builtin(name) != nil }

func (s *Scope) builtin(name string) Getter {
	if get, ok := s.modules[name]; ok {
		return get
	}
	if s.base == nil { // the zero Scope
		return builtin(name)
	}
	return s.base(name)
}

// DeclareCapture declares the named group of a regular expression as a variable.
func (s *Scope) DeclareCapture(name string) {
	if _, ok := s.declared[name]; ok {
		return
	}
	s.declared[name] = func(r *Request) (string, bool) {
		v, ok := r.values().named[name]
		return v, ok
	}
}

// Replaceable reports whether a configuration may define a variable of this name, though it is one of nginx's own.
func Replaceable(name string) bool { return name == "memcached_key" || name == "uid_reset" }

// DeclareSet declares a variable that Request.SetVariable sets. It returns false for one of
// nginx's own. Until it is set, a capture or a map of the name applies; without one the variable
// is empty if empty is set, and else has no value.
func (s *Scope) DeclareSet(name string, empty bool) bool {
	if s.Builtin(name) && !Replaceable(name) {
		return false
	}
	before := s.declared[name]
	if before == nil {
		before = s.member(name)
	}
	s.declared[name] = settable(name, before, empty)
	s.sets[name] = true
	return true
}

// Settable reports whether SetVariable sets a variable.
func (s *Scope) Settable(name string) bool { return s.sets[name] }

// settable returns a variable that has the value of before until it is set.
func settable(name string, before Getter, empty bool) Getter {
	return func(r *Request) (string, bool) {
		if v, ok := r.values().set[name]; ok || before == nil {
			return v, ok || empty
		}
		return before(r)
	}
}

// define declares a variable of a map, geo or split_clients, which may be set as well. A later one of the same name wins.
func (s *Scope) define(name string, get Getter) {
	if s.sets[name] {
		get = settable(name, get, true)
	}
	s.declared[name] = get
}

// DeclareMap declares m as a variable. A later map of the same name wins.
func (s *Scope) DeclareMap(name string, m *Map) { s.define(name, m.get) }

// Lookup finds a variable by its name without the dollar sign.
func (s *Scope) Lookup(name string) (Getter, error) {
	if get := s.Find(name); get != nil {
		return get, nil
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
		return capture(int(name[0] - '0')), nil
	}
	return nil, fmt.Errorf("unknown \"%s\" variable", name)
}

// Find finds a variable while requests are served; nil if there is none. There are no numbered
// captures. It is safe for concurrent use once everything is declared.
func (s *Scope) Find(name string) Getter {
	if get, ok := s.declared[name]; ok {
		return get
	}
	lower := strings.ToLower(name) // nginx's names ignore case
	if get, ok := s.declared[lower]; ok {
		return get
	}
	if get := s.builtin(lower); get != nil {
		return get
	}
	return s.member(lower)
}

// member returns the variable of a family that has the name; nil if there is none.
func (s *Scope) member(name string) Getter {
	for _, f := range s.families {
		rest, ok := strings.CutPrefix(name, f.prefix)
		switch {
		case ok && rest == "":
			return none // a field or argument without a name
		case ok:
			return f.get(rest)
		}
	}
	return nil
}

// Named is Lookup for a variable that does not stand in a text: nginx has no numbered captures
// there.
func (s *Scope) Named(name string) (Getter, error) {
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
		return nil, fmt.Errorf("unknown \"%s\" variable", name)
	}
	return s.Lookup(name)
}

func capture(n int) Getter {
	return func(r *Request) (string, bool) {
		if n >= len(r.captures) {
			return "", false
		}
		return r.captures[n], true
	}
}

// family is variables whose names begin with prefix.
type family struct {
	prefix string
	get    func(rest string) Getter
}

// requestFamilies are the variables whose names end in a name of the request's choice.
var requestFamilies = []family{
	{"arg_", argument},
	{"cookie_", cookie},
	{"http_", requestField},
	{"proxy_protocol_tlv_", requestTLV},
	{"sent_http_", sentField},
	{"sent_trailer_", sentTrailer},
	{"upstream_cookie_", upstreamCookie},
	{"upstream_http_", upstreamField},
	{"upstream_trailer_", func(string) Getter { return none }}, // a log that has it is written before the trailers are known
}

// field converts a variable's ending into a canonical field name.
func field(rest string) string {
	return http.CanonicalHeaderKey(strings.ReplaceAll(rest, "_", "-"))
}

// joined returns a field with several lines as nginx does (since 1.23.0).
func joined(lines []string, sep string) (string, bool) {
	switch len(lines) {
	case 0:
		return "", false
	case 1:
		return lines[0], true
	}
	return strings.Join(lines, sep), true
}

func requestField(rest string) Getter {
	switch name := field(rest); name {
	case "Host":
		return func(r *Request) (string, bool) { return r.HTTP.Host, r.HTTP.Host != "" }
	case "Cookie":
		return func(r *Request) (string, bool) { return joined(r.HTTP.Header["Cookie"], "; ") }
	case "Connection":
		return connectionField
	default:
		return func(r *Request) (string, bool) {
			lines := r.HTTP.Header[name]
			if lines == nil && strings.Contains(rest, "_") {
				lines = spelled(r.HTTP.Header, rest)
			}
			return joined(lines, ", ")
		}
	}
}

// connectionField returns the client's Connection. A WebSocket over HTTP/2 has none: it counts as the upgrade that it is over HTTP/1.1.
func connectionField(r *Request) (string, bool) {
	if r.Connection == nil {
		return joined(r.HTTP.Header["Connection"], ", ")
	}
	return joined(r.Connection, ", ")
}

// spelled returns a field whose name has underscores, which underscores_in_headers lets through: a variable stands for both
// (ngx_http_variable_unknown_header).
func spelled(h http.Header, rest string) []string {
	for name, lines := range h {
		if len(name) == len(rest) && strings.EqualFold(strings.ReplaceAll(name, "-", "_"), rest) {
			return lines
		}
	}
	return nil
}

func sentField(rest string) Getter {
	name := field(rest)
	return func(r *Request) (string, bool) {
		if name == "Connection" && r.Status == http.StatusSwitchingProtocols {
			return "upgrade", true // however the upstream has spelt it
		}
		return joined(r.Header[name], ", ")
	}
}

func sentTrailer(rest string) Getter {
	name := http.TrailerPrefix + field(rest)
	return func(r *Request) (string, bool) { return joined(r.Header[name], ", ") }
}

func argument(name string) Getter {
	return func(r *Request) (string, bool) { return Argument(r.Args, name) }
}

// Argument returns an argument of a query as it was sent, not decoded.
func Argument(args, name string) (string, bool) {
	for pair := range strings.SplitSeq(args, "&") {
		k, v, ok := strings.Cut(pair, "=")
		if ok && strings.EqualFold(k, name) {
			return v, true
		}
	}
	return "", false
}

func cookie(name string) Getter {
	return nonEmpty(func(r *Request) string { return Cookie(r.HTTP, name) })
}

// Cookie returns the value of a request's cookie, "" if there is none.
func Cookie(r *http.Request, name string) string {
	for _, line := range r.Header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			k, v, ok := strings.Cut(strings.TrimLeft(pair, " "), "=")
			if ok && strings.EqualFold(k, name) {
				return v
			}
		}
	}
	return ""
}
