package cachectl

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Expires is a value of nginx's directive "expires" (ngx_http_headers_filter_module.c).
// The zero value is "off".
type Expires struct {
	kind  expiresKind
	after time.Duration // of the day for daily
}

type expiresKind int

const (
	expiresOff expiresKind = iota
	expiresEpoch
	expiresMax
	expiresAccess
	expiresModified
	expiresDaily
)

// ParseExpires parses the arguments of the directive: a time ("7d", "1h30m",
// "-1", "0"), "modified" and a time, "@" and a time of the day ("@15h30m"),
// "epoch", "max" or "off".
func ParseExpires(args ...string) (Expires, error) {
	if len(args) == 2 && args[0] == "modified" {
		if strings.HasPrefix(strings.TrimLeft(args[1], "+-"), "@") {
			return Expires{}, errors.New(`daily time cannot be used with "modified" parameter`)
		}
		after, err := parseSigned(args[1])
		return Expires{expiresModified, after}, err
	}
	if len(args) != 1 {
		return Expires{}, errors.New("invalid number of arguments")
	}
	switch arg := args[0]; {
	case arg == "off":
		return Expires{}, nil
	case arg == "epoch":
		return Expires{kind: expiresEpoch}, nil
	case arg == "max":
		return Expires{kind: expiresMax}, nil
	case strings.HasPrefix(arg, "@"):
		return parseDaily(arg[1:])
	default:
		after, err := parseSigned(arg)
		return Expires{expiresAccess, after}, err
	}
}

func parseDaily(s string) (Expires, error) {
	after, err := parseTime(s)
	if err == nil && after > 24*time.Hour {
		err = errors.New("daily time value must be less than 24 hours")
	}
	return Expires{expiresDaily, after}, err
}

// parseSigned parses a time with an optional sign.
func parseSigned(s string) (time.Duration, error) {
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		after, err := parseTime(rest)
		return -after, err
	}
	return parseTime(strings.TrimPrefix(s, "+"))
}

// AddHeaderStatus reports whether nginx's add_header without "always", and expires,
// apply to responses with the status: 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308. They do
// not apply to errors, so they can't keep a 410 from sticking (see ErrorPages). It can be used as
// filters.HeaderRule.Status.
func AddHeaderStatus(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return false
}

// Apply replaces every line of Cache-Control and Expires in h by those of the
// directive at the time now; if e is off, it changes nothing. Last-Modified, for
// "modified", is taken from h. The caller checks the status: see
// AddHeaderStatus.
func (e Expires) Apply(h http.Header, now time.Time) {
	switch {
	case e.kind == expiresOff:
	case e.kind == expiresEpoch:
		setExpires(h, epoch, "no-cache")
	case e.kind == expiresMax:
		setExpires(h, "Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000")
	case e.after == 0 && e.kind != expiresDaily:
		setExpires(h, httpTime(now), "max-age=0")
	default:
		at := e.at(h, now)
		control := "no-cache"
		if age := at.Unix() - now.Unix(); e.after >= 0 && age >= 0 {
			control = "max-age=" + strconv.FormatInt(age, 10)
		}
		setExpires(h, httpTime(at), control)
	}
}

// at returns the time of expiry.
func (e Expires) at(h http.Header, now time.Time) time.Time {
	switch e.kind {
	case expiresDaily:
		return nextTime(now, e.after)
	case expiresModified:
		if modified, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
			return modified.Add(e.after)
		}
	}
	return now.Add(e.after)
}

// nextTime returns the next time after now that is ofDay after local midnight (ngx_next_time).
func nextTime(now time.Time, ofDay time.Duration) time.Time {
	midnight := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, 0, 0, int(ofDay/time.Second), 0, now.Location())
	}
	if today := midnight(0); today.After(now) {
		return today
	}
	return midnight(1)
}

func setExpires(h http.Header, expires, control string) {
	h["Expires"] = []string{expires}
	h["Cache-Control"] = []string{control}
}

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// units are nginx's units of time, the largest first. In a time they must appear
// in this order, each at most once (ngx_parse_time).
var units = [...]struct {
	name string
	unit time.Duration
}{
	{"y", 365 * 24 * time.Hour},
	{"M", 30 * 24 * time.Hour},
	{"w", 7 * 24 * time.Hour},
	{"d", 24 * time.Hour},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
}

// parseTime parses a time in seconds or with units, "1y 6M" or "1h30m". A number
// without a unit is seconds and must come last.
func parseTime(s string) (time.Duration, error) {
	invalid := fmt.Errorf("invalid value %q", s)
	var total time.Duration
	rest, next := strings.TrimSpace(s), 0
	if rest == "" {
		return 0, invalid
	}
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		number, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, invalid
		}
		rest = rest[digits:]
		unit := time.Second
		if rest != "" && rest[0] != ' ' {
			for next < len(units) && units[next].name != rest[:1] {
				next++
			}
			if next == len(units) {
				return 0, invalid
			}
			unit, rest = units[next].unit, rest[1:]
			next++
		} else if strings.TrimLeft(rest, " ") != "" {
			return 0, invalid
		}
		if number > int64((1<<63-1-total)/unit) {
			return 0, invalid
		}
		total += time.Duration(number) * unit
		rest = strings.TrimLeft(rest, " ")
	}
	return total, nil
}
