package cachectl_test

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

// reading holds the caching fields of a response, parsed by RFC 9110 section 5.6 and RFC 9111 section 5.2:
// lists of directives, with arguments that are tokens or quoted strings.
type reading struct {
	directives map[string][]string // arguments by the name in lower case, "" for none
	pragma     bool
	varyAll    bool
	expires    *time.Time // the first one's date
	hasExpires bool
	date       time.Time
	age        time.Duration // section 4.2.3
	modified   *time.Time
}

// elementsOf cuts a list at its commas. A comma in a quoted string belongs to the string, and a string without
// an end continues to the end of the line.
func elementsOf(line string) (list []string) {
	var b strings.Builder
	quoted, escaped := false, false
	for _, c := range line {
		switch {
		case c == ',' && !quoted:
			list = append(list, strings.TrimSpace(b.String()))
			b.Reset()
			continue
		case escaped:
			escaped = false
		case c == '\\' && quoted:
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		b.WriteRune(c)
	}
	return append(list, strings.TrimSpace(b.String()))
}

func readResponse(h http.Header) *reading {
	r := &reading{directives: map[string][]string{}, date: time.Now()}
	for _, line := range h["Cache-Control"] {
		for _, directive := range elementsOf(line) {
			name, argument, _ := strings.Cut(directive, "=")
			if strings.Contains(directive, "=") && argument == "" {
				argument = `""`
			}
			r.directives[strings.ToLower(name)] = append(r.directives[strings.ToLower(name)], argument)
		}
	}
	for _, line := range h["Pragma"] {
		for _, e := range elementsOf(line) {
			r.pragma = r.pragma || strings.EqualFold(e, "no-cache")
		}
	}
	for _, line := range h["Vary"] {
		r.varyAll = r.varyAll || slices.Contains(elementsOf(line), "*")
	}
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		r.date = at
	}
	r.age = max(0, time.Since(r.date))
	if lines := h["Age"]; len(lines) > 0 && lines[0] != "" && strings.Trim(lines[0], "0123456789") == "" {
		if n, err := strconv.ParseInt(lines[0], 10, 64); err == nil {
			r.age = max(r.age, time.Duration(n)*time.Second)
		}
	}
	if lines := h["Expires"]; len(lines) > 0 {
		r.hasExpires = true
		if at, err := http.ParseTime(strings.TrimSpace(lines[0])); err == nil {
			r.expires = &at
		}
	}
	if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil && at.Before(r.date) {
		r.modified = &at
	}
	return r
}

// has reports whether the response has a directive without an argument; one with an argument applies to
// some fields only.
func (r *reading) has(name string) bool { return slices.Contains(r.directives[name], "") }

// names reports whether the response has a directive, with or without an argument.
func (r *reading) names(name string) bool { return len(r.directives[name]) > 0 }

// seconds returns the first number among a directive's arguments; quoted ones count if quoted is true
// (section 5.2: a cache should accept both).
func (r *reading) seconds(name string, quoted bool) (d time.Duration, ok bool) {
	for _, argument := range r.directives[name] {
		if quoted {
			argument = strings.TrimSuffix(strings.TrimPrefix(argument, `"`), `"`)
		}
		if argument == "" || strings.Trim(argument, "0123456789") != "" {
			continue
		}
		n, err := strconv.ParseInt(argument, 10, 64)
		if err != nil || n > math.MaxInt64/int64(time.Second) {
			n = math.MaxInt64 / int64(time.Second)
		}
		return time.Duration(n) * time.Second, true
	}
	return 0, false
}

// explicit implements the documentation of ExplicitFreshness.
func (r *reading) explicit(h http.Header) bool {
	_, aged := r.seconds("max-age", false)
	first := ""
	if r.hasExpires {
		first = h["Expires"][0]
	}
	return aged || r.has("no-cache") || r.names("no-store") || r.varyAll || first == "0" ||
		r.expires != nil && !r.expires.Equal(time.Unix(0, 0)) ||
		len(h["Cache-Control"]) == 0 && strings.EqualFold(strings.TrimSpace(h.Get("Pragma")), "no-cache")
}

// shared returns how long RFC 9111 lets a shared cache reuse a response to a GET without revalidation:
// 0 for not at all, cachectl.Forever for as long as the cache sees fit.
func (r *reading) shared(status int, authorized bool) time.Duration {
	_, forShared := r.seconds("s-maxage", true)
	switch {
	case r.names("no-store"), r.has("private"), r.has("no-cache"), r.varyAll: // sections 3 and 4.1
		return 0
	case authorized && !r.names("public") && !forShared && !r.names("must-revalidate"): // section 3.5
		return 0
	}
	if d, ok := r.seconds("s-maxage", true); ok { // section 4.2.1
		return max(0, d-r.age)
	}
	if d, ok := r.lifetime(); ok {
		return max(0, d-r.age) // section 4.2
	}
	// Section 4.2.2, with RFC 9110 section 15.1.
	if slices.Contains([]int{200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}, status) || r.names("public") {
		return cachectl.Forever
	}
	return 0
}

// lifetime returns the lifetime by max-age, or else by Expires (section 4.2.1). An Expires that is no
// date is in the past (section 5.3).
func (r *reading) lifetime() (d time.Duration, ok bool) {
	if d, ok := r.seconds("max-age", true); ok {
		return d, true
	}
	if r.hasExpires {
		if r.expires == nil {
			return 0, true
		}
		return max(0, r.expires.Sub(r.date)), true
	}
	return 0, false
}
