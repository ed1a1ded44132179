package cachectl

import (
	"errors"
	"fmt"
	"net/http"
)

// Rule applies Policy to the responses that Match matches.
type Rule struct {
	// Match reports whether the rule is for a response. Required.
	Match Match
	// Policy is what is set on those responses.
	Policy Policy
}

// Rules are tried in order; only the first that matches is applied.
type Rules []Rule

// Apply changes r.Header by the first rule that matches; it makes the header if that is nil. Interim
// responses and a 101 are never changed.
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

// New checks the rules and returns a filter that applies them to the final header
// of every response of the handler that it wraps, after every filter inside of it.
// An error names the first invalid rule.
func New(rules Rules) (func(http.Handler) http.Handler, error) {
	for i, rule := range rules {
		if rule.Match == nil {
			return nil, fmt.Errorf("cachectl: rule %d: %w", i, errors.New("no Match"))
		}
		if err := rule.Policy.check(); err != nil {
			return nil, fmt.Errorf("cachectl: rule %d: %w", i, err)
		}
	}
	return atHeader(rules.Apply), nil
}

// ErrorPages returns the rules that keep error pages from sticking: a 4xx or 5xx
// without explicit freshness (see ExplicitFreshness) becomes "private, no-cache"
// with an Expires in the past. Explicit freshness is kept: the handler chose it.
//
// Redirects are left alone. A bare 301 or 308 is reused by browsers as well, but
// that is what "permanently" promises.
func ErrorPages() Rules {
	return Rules{{
		Match:  And(Class(4, 5), Not(ExplicitFreshness())),
		Policy: revalidate,
	}}
}

// epoch is the date of nginx's "expires epoch". Varnish 7.1 takes second 0 for no
// Expires at all, and keeps the page.
const epoch = "Thu, 01 Jan 1970 00:00:01 GMT"
