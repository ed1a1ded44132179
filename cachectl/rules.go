package cachectl

import (
	"errors"
	"fmt"
	"net/http"
)

// Rule applies Policy to the answers that Match matches.
type Rule struct {
	Match  Match
	Policy Policy
}

// Rules are tried in order; the first that matches is applied, alone.
type Rules []Rule

// Apply changes r.Header, which it makes if that is nil, by the first rule that matches. Interim responses and a
// 101 are never touched.
func (rules Rules) Apply(r *Response) {
	if r.Status < 200 {
		return
	}
	for _, rule := range rules {
		if rule.Match(r) {
			if r.Header == nil {
				r.Header = http.Header{}
			}
			rule.Policy.apply(r.Header)
			return
		}
	}
}

// New checks the rules and returns a filter that applies them to the final head
// of every answer of the handler that it wraps, after every filter inside of it.
func New(rules Rules) (func(http.Handler) http.Handler, error) {
	for i, rule := range rules {
		if rule.Match == nil {
			return nil, fmt.Errorf("cachectl: rule %d: %w", i, errors.New("no Match"))
		}
		if err := rule.Policy.check(); err != nil {
			return nil, fmt.Errorf("cachectl: rule %d: %w", i, err)
		}
	}
	return atHead(rules.Apply), nil
}

// ErrorPages are the rules that keep error pages from sticking: a 4xx or 5xx
// that has no explicit freshness of its own (see ExplicitFreshness) becomes
// "private, no-cache" with an Expires in the past. Explicit freshness is kept:
// somebody chose it.
//
// Redirects are left alone. A bare 301 or 308 is reused by browsers as well, but
// that is what "permanently" promises.
func ErrorPages() Rules {
	return Rules{{
		Match:  And(Class(4, 5), Not(ExplicitFreshness())),
		Policy: asked,
	}}
}

// epoch is nginx's "expires epoch". Varnish 7.1 takes second 0 for no Expires at
// all, and keeps the page.
const epoch = "Thu, 01 Jan 1970 00:00:01 GMT"
