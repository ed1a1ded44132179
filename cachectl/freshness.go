package cachectl

import (
	"net/http"
	"strings"
	"time"
)

// ExplicitFreshness matches responses that state how long a browser may reuse
// them, or that it may not. As browsers were measured to behave, these
// count: max-age with a number, no-cache, no-store, Pragma: no-cache without a
// Cache-Control, Vary: *, a date in the first Expires, and "Expires: 0".
//
// These do not count, since browsers keep a 410 with them for ever: private,
// public, must-revalidate, s-maxage (it binds shared caches only), a malformed
// max-age, any other malformed Expires ("-1" is one in Chromium), and Expires at
// the epoch's second 0, which Varnish takes for no Expires at all.
func ExplicitFreshness() Match { return explicitFreshness }

func explicitFreshness(r *Response) bool {
	control := r.Header["Cache-Control"]
	for _, line := range control {
		for directive := range elements(line) {
			if settlesReuse(strings.TrimSpace(directive)) {
				return true
			}
		}
	}
	if len(control) == 0 && strings.EqualFold(strings.TrimSpace(r.Header.Get("Pragma")), "no-cache") {
		return true
	}
	return variesOnAll(r.Header["Vary"]) || explicitExpires(r.Header["Expires"])
}

// settlesReuse reports whether a directive of Cache-Control alone decides if a
// browser may reuse the response.
func settlesReuse(directive string) bool {
	name, value, hasValue := strings.Cut(directive, "=")
	switch strings.ToLower(name) {
	case "no-store":
		return true
	case "no-cache":
		return !hasValue // no-cache="Field" is about a field only
	case "max-age":
		return isNumber(value)
	}
	return false
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func variesOnAll(lines []string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(item) == "*" {
				return true
			}
		}
	}
	return false
}

func explicitExpires(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	if lines[0] == "0" {
		return true
	}
	at, err := http.ParseTime(lines[0])
	return err == nil && !at.Equal(time.Unix(0, 0))
}
