package cachectl

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Mode is how a Policy treats the caching fields that the response already has.
type Mode int

const (
	// Keep leaves the response as it is. A rule with it stops the search.
	Keep Mode = iota
	// AddIfAbsent sets each of the policy's fields that the response lacks.
	AddIfAbsent
	// Override removes every line of Cache-Control, Expires and Pragma and sets
	// the policy's fields. Browsers differ in which of two conflicting lines they
	// choose, so this is the safe mode.
	Override
	// Append adds the policy's fields after those of the response, as nginx's
	// add_header does. It can't make a cacheable response uncacheable: one with
	// max-age=60 is still cached when "private" is appended.
	Append
	// Cap limits the lifetimes that the response states to the policy's MaxAge. A
	// response that states none is left alone.
	Cap
)

// Policy is what a rule does to a response. The zero value keeps it as it is.
type Policy struct {
	// Mode is how the policy treats the fields that the response already has.
	Mode Mode
	// CacheControl is the value of Cache-Control; "" sets none.
	CacheControl string
	// Expires is the value of Expires, an HTTP date or "0"; "" sets none.
	Expires string
	// Targeted is the value of CDN-Cache-Control, for the shared caches that heed it
	// before Cache-Control (RFC 9213); "" sets none. Override removes those that the
	// response has.
	Targeted string
	// MaxAge is the limit of Cap, in whole seconds.
	MaxAge time.Duration
}

// apply changes h.
func (p Policy) apply(h http.Header) {
	switch p.Mode {
	case Cap:
		capAt(h, p.MaxAge, time.Now())
		return
	case Override:
		delete(h, "Cache-Control")
		delete(h, "Expires")
		delete(h, "Pragma")
		delete(h, "Cdn-Cache-Control")
	}
	p.set(h, "Cdn-Cache-Control", p.Targeted)
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

// check returns why p is invalid, nil if it is valid.
func (p Policy) check() error {
	switch {
	case p.Mode < Keep || p.Mode > Cap:
		return fmt.Errorf("unknown mode %d", p.Mode)
	case (p.Mode == Keep || p.Mode == Cap) && (p.CacheControl != "" || p.Expires != "" || p.Targeted != ""):
		return fmt.Errorf("modes Keep and Cap set no fields, but there are Cache-Control %q, Expires %q and Targeted %q", p.CacheControl, p.Expires, p.Targeted)
	case p.Mode != Cap && p.MaxAge != 0 || p.MaxAge < 0:
		return fmt.Errorf("a MaxAge of %v: it is for the mode Cap, and not negative", p.MaxAge)
	}
	for _, field := range []struct{ name, value string }{{"Cache-Control", p.CacheControl}, {"CDN-Cache-Control", p.Targeted}} {
		if !wellFormed(field.value) {
			return fmt.Errorf("malformed %s %q", field.name, field.value)
		}
	}
	if _, err := http.ParseTime(p.Expires); err != nil && p.Expires != "" && p.Expires != "0" {
		return fmt.Errorf("malformed Expires %q: want an HTTP date or 0", p.Expires)
	}
	return nil
}

// wellFormed reports whether a value of Cache-Control is empty or a list of directives.
func wellFormed(value string) bool {
	for directive := range strings.SplitSeq(value, ",") {
		if name, _, _ := strings.Cut(strings.TrimSpace(directive), "="); value != "" && !httpguts.ValidHeaderFieldName(name) { // a directive's name is a token, too
			return false
		}
	}
	return true
}
