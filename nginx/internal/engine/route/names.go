package route

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// Names selects by host name: an exact name, then the longest leading wildcard, then the longest
// trailing one, then the first regular expression that matches (ngx_http_find_virtual_server). T
// is the type of what a name leads to.
type Names[T any] struct {
	exact    map[string]T
	leading  map[string]T // "*.example.com" as ".example.com"
	trailing map[string]T // "www.example.*" as "www.example."
	patterns []namePattern[T]
}

type namePattern[T any] struct {
	re *pcre.Regexp
	to T
}

// NewNames returns empty Names.
func NewNames[T any]() *Names[T] {
	return &Names[T]{exact: map[string]T{}, leading: map[string]T{}, trailing: map[string]T{}}
}

// ValidName reports whether name may be passed to Add: a wildcard stands for whole labels at one
// end.
func ValidName(name string) bool {
	switch strings.Count(name, "*") {
	case 0:
		return !strings.Contains(name, "..")
	case 1:
		return strings.HasPrefix(name, "*.") && len(name) > 2 ||
			strings.HasSuffix(name, ".*") && len(name) > 2
	}
	return false
}

// Add adds a name: exact, "*.x", "x.*", or ".x" for x and "*.x". It returns false if there is
// such a name already, which is kept.
func (n *Names[T]) Add(name string, to T) bool {
	name = strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, "*."):
		return put(n.leading, name[1:], to)
	case strings.HasSuffix(name, ".*"):
		return put(n.trailing, name[:len(name)-1], to)
	case len(name) > 1 && name[0] == '.':
		first := put(n.exact, name[1:], to)
		return put(n.leading, name, to) && first
	}
	return put(n.exact, name, to)
}

func put[T any](m map[string]T, key string, to T) bool {
	if _, ok := m[key]; ok {
		return false
	}
	m[key] = to
	return true
}

// AddPattern adds a regular expression after those added before.
func (n *Names[T]) AddPattern(re *pcre.Regexp, to T) {
	n.patterns = append(n.patterns, namePattern[T]{re, to})
}

// Named is what a name leads to. What it has captured is set if a regular expression was decisive.
type Named[T any] struct {
	To T
	Captured
}

// Find selects by host, which must be in lower case and without a port. The error is that of a regular expression.
func (n *Names[T]) Find(host string) (found Named[T], ok bool, err error) {
	if to, ok := n.plain(host); ok {
		return Named[T]{To: to}, true, nil
	}
	for _, p := range n.patterns {
		groups, err := p.re.Find(host)
		if err != nil {
			return found, false, err
		}
		if groups != nil {
			return Named[T]{p.to, Captured{groups, p.re}}, true, nil
		}
	}
	return found, false, nil
}

// Plain counts the names without regular expressions.
func (n *Names[T]) Plain() int { return len(n.exact) + len(n.leading) + len(n.trailing) }

// plain selects among the names without regular expressions.
func (n *Names[T]) plain(host string) (to T, ok bool) {
	if to, ok = n.exact[host]; ok {
		return to, true
	}
	if len(n.leading) > 0 {
		for i := strings.IndexByte(host, '.'); i >= 0; {
			if to, ok = n.leading[host[i:]]; ok && i > 0 {
				return to, true
			}
			next := strings.IndexByte(host[i+1:], '.')
			if next < 0 {
				break
			}
			i += next + 1
		}
	}
	if len(n.trailing) > 0 {
		for i := strings.LastIndexByte(host, '.'); i >= 0; i = strings.LastIndexByte(host[:i], '.') {
			if to, ok = n.trailing[host[:i+1]]; ok {
				return to, true
			}
		}
	}
	return to, false
}

// Wildcards looks a host up among wildcards only: what a map with "hostnames" needs beside its
// exact keys.
type Wildcards[T any] struct{ Names *Names[T] }

// Find returns what the host leads to.
func (w Wildcards[T]) Find(host string) (T, bool) { return w.Names.plain(host) }
