package cachectl_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

// A cache that computes a response's age counts it against the lifetime (RFC 9111 section 4.2.3).
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where time stands still
		at := func(field string, after time.Duration) string { return field + ": " + httpDate(time.Now().Add(after)) }
		const h = time.Hour
		for _, c := range []struct {
			lines                                            []string
			chromium, firefox, safari, varnish, nginx, other time.Duration
		}{
			{[]string{at("Date", -48*h), at("Expires", -24*h)}, 0, 0, 0, 24 * h, 0, 0},
			{[]string{at("Date", -48*h), at("Expires", h)}, h, h, h, 49 * h, h, h},
			{[]string{at("Date", -5*time.Second), at("Expires", h)}, h, h, h, h, h, h},
			{[]string{at("Date", 9*time.Second), at("Expires", 5*time.Second)}, 0, 0, 0, 0, 5 * time.Second, 0},
			{[]string{at("Date", h), at("Expires", 3*h)}, 2 * h, 2 * h, 2 * h, 2 * h, 3 * h, 2 * h},
			{[]string{at("Date", -h), "Cache-Control: max-age=600"}, 0, 0, 0, 600e9, 600e9, 0},
			{[]string{at("Date", -h), "Cache-Control: max-age=7200"}, h, h, h, 2 * h, 2 * h, h},
			{[]string{"Age: 7200", "Cache-Control: max-age=600"}, 0, 0, 0, 0, 600e9, 0},
			{[]string{"Age: 60", "Age: 7200", "Cache-Control: max-age=600"}, 540e9, 540e9, 540e9, 540e9, 600e9, 540e9},
			{[]string{"Age: -1", "Cache-Control: max-age=600"}, 600e9, 0, 600e9, 600e9, 600e9, 600e9},
			{[]string{"Age: 60", at("Date", -h), "Cache-Control: max-age=7200"}, h, h, h, 7140e9, 2 * h, h},
			{[]string{"Age: 60", "Cache-Control: s-maxage=600, max-age=1200"}, 1140e9, 1140e9, 1140e9, 540e9, 600e9, 540e9},
			{[]string{at("Date", -h), at("Last-Modified", -101*h)}, 9 * h, 9 * h, 9 * h, 2 * time.Minute, 0, cachectl.Forever},
			{[]string{at("Date", -48*h), at("Last-Modified", -101*h)}, 0, 0, 0, 2 * time.Minute, 0, cachectl.Forever},
			{[]string{"Age: 120"}, 0, 0, 0, 0, 0, cachectl.Forever},
		} {
			var got []time.Duration
			for _, v := range cachectl.Explain(response("/", 200, c.lines...)) {
				got = append(got, v.For)
			}
			if want := []time.Duration{c.chromium, c.firefox, c.safari, c.varnish, c.nginx, c.other}; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q: %v, want %v", c.lines, got, want)
			}
		}
	})
}

// A cap bounds caches that count Expires from Date, and makes no response fresh that is stale for
// caches that compare Expires with their clocks.
func TestCapOfOldDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(after time.Duration) string { return httpDate(time.Now().Add(after)) }
		for _, c := range []struct{ date, expires, want string }{
			{at(-48 * time.Hour), at(-24 * time.Hour), "max-age=0"},
			{at(-48 * time.Hour), at(time.Minute), "max-age=60"},
			{at(-48 * time.Hour), at(time.Hour), "max-age=300"},
			{at(-time.Minute), at(time.Minute), ""},
			{at(-48 * time.Hour), at(-48 * time.Hour), ""},
			{at(time.Hour), at(2 * time.Hour), "max-age=300"},
			{"no date", at(time.Hour), "max-age=300"},
		} {
			r := response("/", 404, "Date: "+c.date, "Expires: "+c.expires)
			cachectl.CapErrors(5 * time.Minute).Apply(r)
			if got := r.Header.Get("Cache-Control"); got != c.want || (got == "") != (r.Header["Expires"] != nil) {
				t.Errorf("Date %s, Expires %s: %v, want Cache-Control %q", c.date, c.expires, r.Header, c.want)
			}
			for _, v := range cachectl.Explain(r) {
				if v.For > 5*time.Minute {
					t.Errorf("Date %s, Expires %s: %+v", c.date, c.expires, v)
				}
			}
		}
	})
}
