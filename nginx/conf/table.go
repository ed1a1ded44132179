package conf

import (
	"slices"
	"strings"
)

// Specs lists the directives that the caller of Parse implements, by name. "include" is Parse's
// own.
type Specs map[string]Spec

// Spec is what Parse must know about an implemented directive. Its contexts and its number of
// arguments are nginx's.
type Spec struct {
	// Repeatable reports whether a block may contain the directive more than once.
	Repeatable bool
	// NotFollowed, if not nil, returns the reason why something of the directive is accepted but
	// not followed; "" if there is nothing.
	NotFollowed func(*Directive) string
}

// classOf returns the class of d, and the reason if it is not implemented.
func (s Specs) classOf(d *Directive) (Class, string) {
	if _, ok := s[d.Name]; ok {
		return Implemented, ""
	}
	if d.Name == "user" {
		return userClass(d)
	}
	if name, ok := asProxy(d.Name); ok {
		as := *d
		as.Name = name
		return s.classOf(&as)
	}
	if class, reason, ok := classOfName(d.Name); ok {
		return class, reason
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
	return Refused, refused[d.Name]
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
	return familyClass(name)
}

// repeatable reports whether a block may contain the directive more than once.
func (s Specs) repeatable(name string) bool {
	if spec, ok := s[name]; ok {
		return spec.Repeatable
	}
	switch name {
	case "load_module", "debug_connection", "env", "worker_cpu_affinity", "proxy_cache_path", "proxy_cache_bypass", "proxy_cache_valid", "proxy_no_cache",
		"ssl_conf_command", "proxy_ssl_conf_command", "early_hints":
		return true
	}
	if like, ok := asProxy(name); ok {
		return s.repeatable(like)
	}
	_, _, family := familyClass(name)
	return family
}
