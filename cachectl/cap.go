package cachectl

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// capAt limits what h says to a time: max-age and s-maxage, and a date in Expires, in whose
// place max-age stands then. What says nothing stays so. Expires is as far away as a cache may take it to be: from Date, where that
// is in the past, as RFC 9111 section 4.2.1 has it. It is over all the same where it is over by this clock, as nginx has it.
func capAt(h http.Header, most time.Duration, now time.Time) {
	limit := maxAge(most)
	aged := false // by a max-age that every browser reads
	for i, line := range h["Cache-Control"] {
		directives := slices.Collect(elements(line))
		for j, d := range directives {
			name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
			name = strings.ToLower(name)
			aged = aged || name == "max-age" && isNumber(value)
			if (name == "max-age" || name == "s-maxage") && over(value, most) {
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
	if !aged {
		h["Cache-Control"] = append(h["Cache-Control"], maxAge(max(0, min(most, at.Sub(now)))))
	}
}

// maxAge is the directive.
func maxAge(d time.Duration) string {
	return "max-age=" + strconv.FormatInt(int64(d/time.Second), 10)
}

func over(seconds string, most time.Duration) bool {
	seconds = strings.Trim(seconds, `"`)
	if !isNumber(seconds) {
		return false
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	return err != nil || n > int64(most/time.Second)
}

// CapErrors limits for how long errors may be kept where they say it, and has those that
// don't be asked for again, as ErrorPages does.
func CapErrors(most time.Duration) Rules {
	return append(Rules{{And(Class(4, 5), ExplicitFreshness()), Policy{Mode: Cap, MaxAge: most}}}, ErrorPages()...)
}
