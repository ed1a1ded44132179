package cachectl

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// capAt limits what h says to a time: max-age and s-maxage, and a date in Expires, in whose
// place max-age stands then. What says nothing stays so.
func capAt(h http.Header, most time.Duration, now time.Time) {
	limit := "max-age=" + strconv.FormatInt(int64(most/time.Second), 10)
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
	if at, err := http.ParseTime(h.Get("Expires")); err == nil && at.Sub(now) > most {
		delete(h, "Expires")
		if !aged {
			h["Cache-Control"] = append(h["Cache-Control"], limit)
		}
	}
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
