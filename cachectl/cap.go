package cachectl

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// capAt limits the lifetimes that h states to most: max-age, s-maxage, and a date in Expires, which
// max-age then replaces. A header that states none is left alone.
//
// The lifetime of Expires is the longest that a cache may compute: counted from Date, where that is in
// the past (RFC 9111 section 4.2.1). An Expires in the past by this clock is expired nevertheless, as
// it is for nginx.
func capAt(h http.Header, most time.Duration, now time.Time) {
	limit := maxAge(most)
	hasMaxAge := false // one that every browser reads
	for i, line := range h["Cache-Control"] {
		directives := slices.Collect(elements(line))
		for j, d := range directives {
			name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
			name = strings.ToLower(name)
			hasMaxAge = hasMaxAge || name == "max-age" && isNumber(value)
			if (name == "max-age" || name == "s-maxage") && exceeds(value, most) {
				directives[j] = " " + strings.Replace(limit, "max-age", name, 1)
			}
		}
		h["Cache-Control"][i] = strings.TrimSpace(strings.Join(directives, ","))
	}
	at, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return
	}
	from := now
	if date, err := http.ParseTime(h.Get("Date")); err == nil && date.Before(now) {
		from = date
	}
	if at.Sub(from) <= most {
		return
	}
	delete(h, "Expires")
	if !hasMaxAge {
		h["Cache-Control"] = append(h["Cache-Control"], maxAge(max(0, min(most, at.Sub(now)))))
	}
}

// maxAge returns the directive "max-age" of d.
func maxAge(d time.Duration) string {
	return "max-age=" + strconv.FormatInt(int64(d/time.Second), 10)
}

// exceeds reports whether seconds, a number quoted or not, is more than most.
func exceeds(seconds string, most time.Duration) bool {
	seconds = strings.Trim(seconds, `"`)
	if !isNumber(seconds) {
		return false
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	return err != nil || n > int64(most/time.Second)
}

// CapErrors returns rules that limit the lifetime of errors that state one to most, and apply
// ErrorPages to the other errors.
func CapErrors(most time.Duration) Rules {
	return append(Rules{{And(Class(4, 5), ExplicitFreshness()), Policy{Mode: Cap, MaxAge: most}}}, ErrorPages()...)
}
