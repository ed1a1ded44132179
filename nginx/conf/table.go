package conf

import (
	"slices"
	"strings"
)

// Specs lists the directives that the caller of Parse implements, by name. "include" is Parse's
// own.
type Specs map[string]Spec

// Spec is what Parse must know about an implemented directive. Its contexts and its number of
// arguments are nginx's, unless it has a Syntax.
type Spec struct {
	// Repeatable reports whether a block may contain the directive more than once.
	Repeatable bool
	// NotFollowed, if not nil, returns the reason why something of the directive is accepted but
	// not followed; "" if there is nothing.
	NotFollowed func(*Directive) string
	// Stream, if not nil, is the directive's Spec inside stream. If it is nil, the directive is not implemented there.
	Stream *Spec
	// StreamOnly reports whether the directive is implemented inside stream alone.
	StreamOnly bool
	// Syntax is that of a directive which nginx does not have; nil for one of nginx's.
	Syntax *Syntax
}

// of returns the Spec of a directive inside blocks, and whether it is implemented there.
func (s Specs) of(name string, blocks []string) (Spec, bool) {
	spec, ok := s[name]
	switch {
	case !inStream(blocks):
		return spec, ok && !spec.StreamOnly
	case !ok || spec.Stream == nil:
		return Spec{}, false
	}
	return *spec.Stream, true
}

func inStream(blocks []string) bool { return len(blocks) > 0 && blocks[0] == "stream" }

// classOf returns the class of d inside blocks, and the reason if it is not implemented.
func (s Specs) classOf(d *Directive, blocks []string) (Class, string) {
	if _, ok := s.of(d.Name, blocks); ok {
		return Implemented, ""
	}
	if class, reason, ok := classOfName(d.Name); ok {
		return class, reason
	}
	if name, ok := asProxy(d.Name); ok {
		as := *d
		as.Name = name
		return s.classOf(&as, blocks)
	}
	value := strings.Join(d.Args, " ")
	if values, ok := harmless[d.Name]; ok {
		if slices.Contains(values, value) {
			return NoOp, alreadySo
		}
		return Refused, "only " + strings.Join(values, ", ")
	}
	if p, ok := passedUnless[d.Name]; ok {
		if value == p.harmless {
			return NoOp, alreadySo
		}
		return Passed, p.reason
	}
	if reason := refused[d.Name]; reason != "" {
		return Refused, reason
	}
	for _, m := range loaded {
		if _, known := m.match(d.Name); known {
			return Refused, m.reason
		}
	}
	return Refused, ""
}

const alreadySo = "that is what culvert does anyway"

// classOfName returns the class of a directive that is not implemented and has the same one for
// each value.
func classOfName(name string) (Class, string, bool) {
	if reason, ok := noOps[name]; ok {
		return NoOp, reason, true
	}
	if reason, ok := passed[name]; ok {
		return Passed, reason, true
	}
	return 0, "", false
}

// repeatable reports whether the last of blocks may contain the directive more than once.
func (s Specs) repeatable(name string, blocks []string) bool {
	if spec, ok := s.of(name, blocks); ok {
		return spec.Repeatable
	}
	switch name {
	case "load_module", "debug_connection", "env", "worker_cpu_affinity", "proxy_cache_path", "proxy_cache_bypass", "proxy_cache_valid", "proxy_no_cache",
		"ssl_conf_command", "proxy_ssl_conf_command":
		return true
	}
	if like, ok := asProxy(name); ok {
		return s.repeatable(like, blocks)
	}
	return false
}
