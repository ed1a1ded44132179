package conf

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Size parses a size in bytes as nginx does: digits and an optional k, m or g (ngx_parse_offset).
func Size(s string) (n int64, ok bool) {
	factor := int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			factor = 1 << 10
		case 'm', 'M':
			factor = 1 << 20
		case 'g', 'G':
			factor = 1 << 30
		}
		if factor > 1 {
			s = s[:len(s)-1]
		}
	}
	n, ok = digits(s)
	if !ok || n > math.MaxInt64/factor {
		return 0, false
	}
	return n * factor, true
}

// Duration parses a time as nginx does: "60", "1m30s", "500ms", "1d 12h"; a number without a unit
// counts seconds (ngx_parse_time).
func Duration(s string) (time.Duration, bool) {
	total, last := time.Duration(0), time.Duration(math.MaxInt64)
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(s)
		}
		n, ok := digits(s[:end])
		if !ok {
			return 0, false
		}
		unit, rest := timeUnit(s[end:])
		if unit == 0 || unit >= last || n > int64(math.MaxInt64/unit)/2 {
			return 0, false
		}
		last, total = unit, total+time.Duration(n)*unit
		s = strings.TrimLeft(rest, " ")
	}
	return total, last != math.MaxInt64
}

// timeUnit parses the unit at the start of s; 0 if there is none that nginx knows.
func timeUnit(s string) (unit time.Duration, rest string) {
	const day = 24 * time.Hour
	switch {
	case s == "" || s[0] == ' ':
		return time.Second, s
	case strings.HasPrefix(s, "ms"):
		return time.Millisecond, s[2:]
	}
	switch s[0] {
	case 's':
		unit = time.Second
	case 'm':
		unit = time.Minute
	case 'h':
		unit = time.Hour
	case 'd':
		unit = day
	case 'w':
		unit = 7 * day
	case 'M':
		unit = 30 * day
	case 'y':
		unit = 365 * day
	}
	return unit, s[1:]
}

// Number parses a decimal number without a sign.
func Number(s string) (int, bool) {
	n, ok := digits(s)
	return int(n), ok && n <= math.MaxInt32
}

func digits(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// Flag parses the argument of an on|off directive. The parser has checked that it is one of the
// two.
func (d *Directive) Flag() bool { return strings.EqualFold(d.Args[0], "on") }

// Duration parses the first argument of d as a time.
func (d *Directive) Duration() (time.Duration, error) {
	t, ok := Duration(d.Args[0])
	if !ok {
		return 0, d.Invalid()
	}
	return t, nil
}

// Size parses the first argument of d as a size.
func (d *Directive) Size() (int64, error) {
	n, ok := Size(d.Args[0])
	if !ok {
		return 0, d.Invalid()
	}
	return n, nil
}

// Number parses the first argument of d as a number.
func (d *Directive) Number() (int, error) {
	n, ok := Number(d.Args[0])
	if !ok {
		return 0, d.Errorf("\"%s\" directive invalid number", d.Name)
	}
	return n, nil
}
