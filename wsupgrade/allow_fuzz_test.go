package wsupgrade_test

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/wsupgrade"
)

// FuzzAllowOrigins compares AllowOrigins with a reference that compares label by label: a pattern
// that is accepted matches the origins that the reference matches and no other, and at least the
// one that it was made for.
func FuzzAllowOrigins(f *testing.F) {
	for _, pattern := range []string{
		"https://app.example", "https://*.app.example", "https://*app.example", "https://a*.app.example", "https://**.app.example",
		"HTTP://App.Example:8080", "https://[::1]:443", "https://192.0.2.1", "https://.app.example", "https://app.example.", "https://xn--bcher-kva.example",
	} {
		for _, origin := range []string{"https://evilapp.example", "https://a.app.example", "https://a.b.app.example:443", "http://app.example:8080", "https://[0::1]", "https://.app.example"} {
			f.Add(pattern, origin)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, origin string) {
		check, err := wsupgrade.AllowOrigins(pattern)
		if err != nil {
			return
		}
		if own := strings.Replace(pattern, "*", "a", 1); !accepts(check, own) {
			t.Errorf("%q never matches: not even %q", pattern, own)
		}
		if bare := strings.Replace(pattern, "*.", "", 1); bare != pattern && (accepts(check, bare) || accepts(check, strings.Replace(pattern, "*.", "evil", 1))) {
			t.Errorf("%q accepts a name that is not below it", pattern)
		}
		if got, want := accepts(check, origin), covers(pattern, origin); got != want {
			t.Errorf("%q, origin %q: %v, the reference has %v", pattern, origin, got, want)
		}
	})
}

func accepts(check func(*http.Request) bool, origin string) bool {
	return check(&http.Request{Host: "culvert.test", Header: http.Header{"Origin": {origin}}})
}

// originSyntax matches an origin as a browser writes it, in any case.
var originSyntax = regexp.MustCompile(`^(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?$`)

// covers is the reference: it reports whether pattern, which AllowOrigins has accepted, covers an
// origin.
func covers(pattern, origin string) bool {
	p := originSyntax.FindStringSubmatch(strings.Replace(strings.ToLower(pattern), "*.", "", 1))
	o := originSyntax.FindStringSubmatch(strings.ToLower(origin))
	if p == nil || o == nil || p[1] != o[1] || defaulted(p) != defaulted(o) {
		return false
	}
	if a, err := netip.ParseAddr(strings.Trim(p[2], "[]")); err == nil {
		b, err := netip.ParseAddr(strings.Trim(o[2], "[]"))
		return err == nil && a == b
	}
	want, got := strings.Split(p[2], "."), strings.Split(o[2], ".")
	if strings.Contains(pattern, "*") {
		above := len(got) - len(want)
		return above > 0 && slices.Equal(got[above:], want) && validLabels(got)
	}
	return slices.Equal(got, want)
}

func defaulted(origin []string) string {
	if origin[3] == "" {
		return map[string]string{"http": "80", "https": "443"}[origin[1]]
	}
	return origin[3]
}

// validLabels reports whether such a name can exist.
func validLabels(labels []string) bool {
	return len(strings.Join(labels, ".")) <= 253 && !slices.ContainsFunc(labels, func(s string) bool { return s == "" || len(s) > 63 })
}
