package route

import (
	"sort"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// Locations selects among the locations of one server, or among those nested in one location. T
// is the type of what a location leads to.
type Locations[T any] struct {
	exact    map[string]Prefix[T]
	prefixes []Prefix[T] // longest first
	patterns []Pattern[T]
}

// Prefix is a location given by a prefix or, with "=", by the whole path.
type Prefix[T any] struct {
	// Name is the prefix.
	Name string
	// Final is set for "^~": no regular expression is tried after it.
	Final bool
	// Redirect is set for a prefix that ends in a slash and is proxied: the response to its name
	// without the slash is a 301 (ngx_http_core_find_config_phase).
	Redirect bool
	// Nested are the locations inside, nil for none.
	Nested *Locations[T]
	// To is what the location leads to.
	To T
}

// Pattern is a location given by a regular expression.
type Pattern[T any] struct {
	Regexp *pcre.Regexp
	Nested *Locations[T]
	To     T
}

// Match is the result of a selection.
type Match[T any] struct {
	// To is what the chosen location leads to.
	To T
	// Redirect is set if the response must be a 301 to the same path with a slash behind it.
	Redirect bool
	// Groups are what the regular expression captured, nil if none was decisive, and Regexp is
	// that expression.
	Groups []string
	Regexp *pcre.Regexp
	// Around are the regular expressions of the locations around that one, the outermost first.
	Around []Captured
}

// Captured is what a regular expression has captured.
type Captured struct {
	Groups []string
	Regexp *pcre.Regexp
}

// AddExact adds "location = p.Name". It returns false if there is one already.
func (l *Locations[T]) AddExact(p Prefix[T]) bool {
	if _, ok := l.exact[p.Name]; ok {
		return false
	}
	if l.exact == nil {
		l.exact = map[string]Prefix[T]{}
	}
	l.exact[p.Name] = p
	return true
}

// AddPrefix adds a prefix. It returns false if there is one already.
func (l *Locations[T]) AddPrefix(p Prefix[T]) bool {
	for _, have := range l.prefixes {
		if have.Name == p.Name {
			return false
		}
	}
	l.prefixes = append(l.prefixes, p)
	sort.SliceStable(l.prefixes, func(i, j int) bool {
		return len(l.prefixes[i].Name) > len(l.prefixes[j].Name)
	})
	return true
}

// AddPattern adds a regular expression behind those added before.
func (l *Locations[T]) AddPattern(p Pattern[T]) { l.patterns = append(l.patterns, p) }

// Find selects the location of a normalised path, as ngx_http_core_find_location does: an exact
// one, else the longest prefix; then, unless that prefix is final, the first regular expression
// that matches, looked for among the nested locations of the prefix first. The error is that of a regular expression.
func (l *Locations[T]) Find(path string) (m Match[T], found bool, err error) {
	m, found, _, err = l.find(path)
	return m, found, err
}

// find also reports whether the selection is settled, so that no regular expression of the
// enclosing levels is tried. A final prefix settles its own level only.
func (l *Locations[T]) find(path string) (m Match[T], found, settled bool, err error) {
	if p, ok := l.exact[path]; ok {
		return Match[T]{To: p.To}, true, true, nil
	}
	if p, ok := l.redirect(path); ok {
		return Match[T]{To: p.To, Redirect: true}, true, true, nil
	}
	noPatterns := false
	if p, ok := l.longest(path); ok {
		m, found, noPatterns = Match[T]{To: p.To}, true, p.Final
		inner, ok, settled, err := p.Nested.nested(path)
		if err != nil {
			return m, false, false, err
		}
		if ok {
			m = inner
			if settled {
				return m, true, true, nil
			}
		}
	}
	if noPatterns {
		return m, found, false, nil
	}
	for _, p := range l.patterns {
		groups, err := p.Regexp.Find(path)
		if err != nil {
			return m, false, false, err
		}
		if groups == nil {
			continue
		}
		m = Match[T]{To: p.To, Groups: groups, Regexp: p.Regexp}
		inner, ok, _, err := p.Nested.nested(path)
		if err != nil {
			return m, false, false, err
		}
		if ok {
			m = inner
			m.Around = append([]Captured{{groups, p.Regexp}}, m.Around...)
		}
		return m, true, true, nil
	}
	return m, found, false, nil
}

func (l *Locations[T]) nested(path string) (m Match[T], found, settled bool, err error) {
	if l == nil {
		return m, false, false, nil
	}
	return l.find(path)
}

func (l *Locations[T]) longest(path string) (Prefix[T], bool) {
	for _, p := range l.prefixes {
		if strings.HasPrefix(path, p.Name) {
			return p, true
		}
	}
	return Prefix[T]{}, false
}

// redirect finds the proxied location whose name is path with a slash added. A prefix that is
// path itself has precedence.
func (l *Locations[T]) redirect(path string) (found Prefix[T], ok bool) {
	if p, have := l.exact[path+"/"]; have && p.Redirect {
		found, ok = p, true
	}
	for _, p := range l.prefixes {
		if p.Name == path {
			return p, false
		}
		if p.Redirect && p.Name == path+"/" {
			found, ok = p, true
		}
	}
	return found, ok
}
