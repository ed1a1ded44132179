package route_test

import (
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// locations builds Locations from lines like nginx's: "= /a", "^~ /a", "/a/ >" for a proxied one,
// "~ re". Two leading spaces nest a line.
func locations(t *testing.T, text string) *route.Locations[string] {
	t.Helper()
	outer, inner := &route.Locations[string]{}, (*route.Locations[string])(nil)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		name := strings.TrimSpace(line)
		into := outer
		if strings.HasPrefix(line, "  ") {
			into = inner
		}
		nested := &route.Locations[string]{}
		words := strings.Fields(name)
		added := true
		switch {
		case words[0] == "=":
			added = into.AddExact(route.Prefix[string]{Name: words[1], To: name, Nested: nested})
		case words[0] == "~":
			into.AddPattern(route.Pattern[string]{Regexp: compile(t, words[1]), To: name, Nested: nested})
		case words[0] == "^~":
			added = into.AddPrefix(route.Prefix[string]{Name: words[1], Final: true, To: name, Nested: nested})
		default:
			redirect := len(words) == 2
			added = into.AddPrefix(route.Prefix[string]{Name: words[0], Redirect: redirect, To: name, Nested: nested})
		}
		if !added {
			t.Fatalf("duplicate %q", name)
		}
		if into == outer {
			inner = nested
		}
	}
	return outer
}

func compile(t *testing.T, pattern string) *pcre.Regexp {
	t.Helper()
	re, err := pcre.Compile(pattern, false)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

// A regular expression that is given up makes the location unknown, wherever it stands.
func TestLocationFails(t *testing.T) {
	for _, text := range []string{"~ ^/(?!x)(a+)+$", "/\n  ~ ^/(?!x)(a+)+$\n~ a", "~ ^/\n  ~ ^/(?!x)(a+)+$"} {
		if m, ok, err := locations(t, text).Find("/" + strings.Repeat("a", 60) + "!"); err == nil || ok {
			t.Errorf("%s: %+v", text, m)
		}
	}
}

func TestLocationChoice(t *testing.T) {
	tests := []struct {
		about, locations, path, want string
	}{
		{"exact before all", "/\n= /a\n~ a", "/a", "= /a"},
		{"exact is the whole path", "/\n= /a", "/ab", "/"},
		{"longest prefix", "/\n/a\n/ab", "/abc", "/ab"},
		{"order of prefixes is nothing", "/ab\n/a\n/", "/abc", "/ab"},
		{"no segment boundary", "/a", "/ab", "/a"},
		{"none", "/a", "/b", ""},
		{"regular expression after prefix", "/a\n~ b$", "/ab", "~ b$"},
		{"first regular expression", "~ a\n~ ab", "/ab", "~ a"},
		{"final prefix stops", "^~ /a\n~ b$", "/ab", "^~ /a"},
		{"final prefix must be the longest", "^~ /a\n/ab\n~ c$", "/abc", "~ c$"},
		{"nested prefix", "/a\n  /a/b", "/a/bc", "/a/b"},
		{"nested regular expression before outer", "/a\n  ~ x$\n~ y?x$", "/ax", "~ x$"},
		{"outer regular expression after nested prefix", "/a\n  /ab\n~ b$", "/ab", "~ b$"},
		{"nested final prefix does not stop the outer level", "/a\n  ^~ /ab\n~ b$", "/ab", "~ b$"},
		{"outer final prefix stops around nested ones", "^~ /a\n  /ab\n~ b$", "/ab", "/ab"},
		{"nested exact settles", "/a\n  = /ab\n~ b$", "/ab", "= /ab"},
		{"nested in a regular expression", "~ ^/a\n  ~ b$", "/ab", "~ b$"},
		{"proxied name without slash", "/\n/a/ >", "/a", "301 /a/ >"},
		{"not if the bare name is a location", "/a\n/a/ >", "/a", "/a"},
		{"not if it is an exact location", "= /a\n/a/ >", "/a", "= /a"},
		{"no redirect deeper", "/\n/a/ >", "/a/b", "/a/ >"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			m, ok, err := locations(t, tt.locations).Find(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			got := m.To
			if m.Redirect {
				got = "301 " + got
			}
			if ok != (tt.want != "") || got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.path, got, tt.want)
			}
		})
	}
}

func TestLocationCaptures(t *testing.T) {
	m, ok, err := locations(t, "~ ^/u/(\\d+)").Find("/u/42/x")
	if err != nil || !ok || len(m.Groups) != 2 || m.Groups[1] != "42" || m.Regexp == nil {
		t.Errorf("got %+v", m)
	}
}

func TestLocationDuplicates(t *testing.T) {
	var l route.Locations[int]
	if !l.AddExact(route.Prefix[int]{Name: "/a"}) || l.AddExact(route.Prefix[int]{Name: "/a"}) {
		t.Error("exact")
	}
	if !l.AddPrefix(route.Prefix[int]{Name: "/a"}) || l.AddPrefix(route.Prefix[int]{Name: "/a", Final: true}) {
		t.Error("prefix")
	}
}
