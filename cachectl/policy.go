package cachectl

import (
	"fmt"
	"net/http"
	"strings"
)

// Mode says how a Policy meets what the answer already says.
type Mode int

const (
	// Keep leaves the answer as it is. A rule with it stops the search.
	Keep Mode = iota
	// AddIfAbsent sets each of the policy's fields that the answer lacks.
	AddIfAbsent
	// Override removes every line of Cache-Control, Expires and Pragma and sets
	// the policy's fields. Of two conflicting lines browsers choose each in its
	// own way, so this is the mode that is safe.
	Override
	// Append adds the policy's fields behind those of the answer, as nginx's
	// add_header does. It can't make a cached answer uncacheable: max-age=60
	// beside an appended "private" stays cached.
	Append
)

// Policy is what a rule does to an answer.
type Policy struct {
	// Mode says what happens to the fields that the answer has.
	Mode Mode
	// CacheControl is the value of Cache-Control; "" sets none.
	CacheControl string
	// Expires is the value of Expires, an HTTP date or "0"; "" sets none.
	Expires string
}

// apply changes h.
func (p Policy) apply(h http.Header) {
	if p.Mode == Override {
		delete(h, "Cache-Control")
		delete(h, "Expires")
		delete(h, "Pragma")
	}
	p.set(h, "Cache-Control", p.CacheControl)
	p.set(h, "Expires", p.Expires)
}

func (p Policy) set(h http.Header, field, value string) {
	present := len(h[field]) > 0
	if value == "" || p.Mode == Keep || p.Mode == AddIfAbsent && present {
		return
	}
	h[field] = append(h[field], value)
}

// check returns what is wrong with p.
func (p Policy) check() error {
	if p.Mode < Keep || p.Mode > Append {
		return fmt.Errorf("unknown mode %d", p.Mode)
	}
	if p.Mode == Keep && (p.CacheControl != "" || p.Expires != "") {
		return fmt.Errorf("mode Keep sets no fields, but has Cache-Control %q and Expires %q", p.CacheControl, p.Expires)
	}
	for directive := range strings.SplitSeq(p.CacheControl, ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(directive), "="); p.CacheControl != "" && !isToken(name) {
			return fmt.Errorf("malformed Cache-Control %q", p.CacheControl)
		}
	}
	if _, err := http.ParseTime(p.Expires); err != nil && p.Expires != "" && p.Expires != "0" {
		return fmt.Errorf("malformed Expires %q: want an HTTP date or 0", p.Expires)
	}
	return nil
}

func isToken(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}
