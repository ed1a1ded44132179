package cachectl_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

// now is in a zone, since daily times are local ones.
var now = time.Date(2026, time.November, 21, 14, 30, 0, 500e6, time.FixedZone("here", 2*60*60))

func TestExpires(t *testing.T) {
	const modified = "Sat, 21 Nov 2026 12:00:00 GMT" // half an hour before now
	tests := []struct{ args, expires, control string }{
		{"off", "kept", "kept"},
		{"epoch", "Thu, 01 Jan 1970 00:00:01 GMT", "no-cache"},
		{"max", "Thu, 31 Dec 2037 23:55:55 GMT", "max-age=315360000"},
		{"0", "Sat, 21 Nov 2026 12:30:00 GMT", "max-age=0"},
		{"7d", "Sat, 28 Nov 2026 12:30:00 GMT", "max-age=604800"},
		{"+1h30m", "Sat, 21 Nov 2026 14:00:00 GMT", "max-age=5400"},
		{"1d 2h", "Sun, 22 Nov 2026 14:30:00 GMT", "max-age=93600"},
		{"90", "Sat, 21 Nov 2026 12:31:30 GMT", "max-age=90"},
		{"-1", "Sat, 21 Nov 2026 12:29:59 GMT", "no-cache"},
		{"-2h", "Sat, 21 Nov 2026 10:30:00 GMT", "no-cache"},
		{"@15h30m", "Sat, 21 Nov 2026 13:30:00 GMT", "max-age=3600"},
		{"@14h", "Sun, 22 Nov 2026 12:00:00 GMT", "max-age=84600"},
		{"@0", "Sat, 21 Nov 2026 22:00:00 GMT", "max-age=34200"},
		{"modified 1h", "Sat, 21 Nov 2026 13:00:00 GMT", "max-age=1800"},
		{"modified 10m", "Sat, 21 Nov 2026 12:10:00 GMT", "no-cache"},
		{"modified -1h", "Sat, 21 Nov 2026 11:00:00 GMT", "no-cache"},
	}
	for _, test := range tests {
		args := []string{test.args}
		if rest, ok := strings.CutPrefix(test.args, "modified "); ok {
			args = []string{"modified", rest}
		}
		e, err := cachectl.ParseExpires(args...)
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
			continue
		}
		h := http.Header{"Cache-Control": {"kept"}, "Expires": {"kept"}, "Last-Modified": {modified}}
		if test.args != "off" {
			h["Cache-Control"] = []string{"a", "b"}
		}
		e.Apply(h, now)
		if got, want := fmt.Sprint(h["Expires"], h["Cache-Control"]), fmt.Sprint([]string{test.expires}, []string{test.control}); got != want {
			t.Errorf("%s: %s, want %s", test.args, got, want)
		}
	}
}

// "modified" without a Last-Modified counts from the time of the request, as nginx does.
func TestExpiresWithoutLastModified(t *testing.T) {
	e, err := cachectl.ParseExpires("modified", "1h")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Header{{}, {"Last-Modified": {"yesterday"}}} {
		e.Apply(h, now)
		if h.Get("Cache-Control") != "max-age=3600" {
			t.Errorf("left %v", h)
		}
	}
}

func TestBadExpires(t *testing.T) {
	const invalid = "invalid value "
	for args, want := range map[string]string{
		"":                     "invalid number of arguments",
		"1d|2d":                "invalid number of arguments",
		"modified|1d|2d":       "invalid number of arguments",
		"7x":                   invalid + `"7x"`,
		"1m1h":                 invalid + `"1m1h"`,
		"1d1d":                 invalid + `"1d1d"`,
		"1 1d":                 invalid + `"1 1d"`,
		"d":                    invalid + `"d"`,
		"-":                    invalid + `""`,
		"1.5h":                 invalid + `"1.5h"`,
		"999999999999y":        invalid + `"999999999999y"`,
		"99999999999999999999": invalid + `"99999999999999999999"`,
		"@25h":                 "daily time value must be less than 24 hours",
		"@":                    invalid + `""`,
		"modified|@1h":         `daily time cannot be used with "modified" parameter`,
		"modified|soon":        invalid + `"soon"`,
	} {
		var list []string
		if args != "" {
			list = strings.Split(args, "|")
		}
		if _, err := cachectl.ParseExpires(list...); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", args, err, want)
		}
	}
}

func TestAddHeaderStatus(t *testing.T) {
	want := map[int]bool{200: true, 201: true, 204: true, 206: true, 301: true, 302: true, 303: true, 304: true, 307: true, 308: true}
	for status := range 600 {
		if got := cachectl.AddHeaderStatus(status); got != want[status] {
			t.Errorf("%d: %v", status, got)
		}
	}
}

// FuzzExpires: arguments that are accepted give one date that can be parsed and one
// Cache-Control, which agree with each other.
func FuzzExpires(f *testing.F) {
	for _, seed := range []string{"7d", "-1", "0", "@15h30m", "max", "epoch", "1y 6M 3w", "290y", "+0s", "-290y"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, arg string, modified bool) {
		args := []string{arg}
		if modified {
			args = []string{"modified", arg}
		}
		e, err := cachectl.ParseExpires(args...)
		if err != nil || arg == "off" {
			return
		}
		h := http.Header{"Last-Modified": {"Sat, 21 Nov 2026 12:00:00 GMT"}}
		e.Apply(h, now)
		at, err := http.ParseTime(h.Get("Expires"))
		if err != nil || len(h["Cache-Control"]) != 1 {
			t.Fatalf("%v (%v)", h, err)
		}
		control := h.Get("Cache-Control")
		if arg == "max" && !modified {
			return
		}
		if want := fmt.Sprintf("max-age=%d", at.Unix()-now.Unix()); control != want && (control != "no-cache" || at.After(now)) {
			t.Errorf("%v, want %s", h, want)
		}
	})
}
