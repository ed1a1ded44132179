package route_test

import (
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

func TestServerNameChoice(t *testing.T) {
	n := route.NewNames[string]()
	for _, name := range []string{
		"exact.test", "*.test", "*.long.test", "www.*", "www.long.*", ".dot.org", "", "UPPER.test",
	} {
		if !n.Add(name, name) {
			t.Fatalf("duplicate %q", name)
		}
	}
	n.AddPattern(compile(t, `(?i)^(?<sub>\w+)\.re$`), "first pattern")
	n.AddPattern(compile(t, `re$`), "second pattern")
	tests := map[string]string{
		"exact.test":     "exact.test",
		"upper.test":     "UPPER.test",
		"other.test":     "*.test",
		"a.b.test":       "*.test",
		"x.long.test":    "*.long.test",
		"test":           "none",
		"www.test":       "*.test", // a leading wildcard has precedence over a trailing one
		"www.org":        "www.*",
		"www.long.org":   "www.long.*",
		"www.a.b":        "www.*",
		"www":            "none",
		"dot.org":        ".dot.org",
		"x.dot.org":      ".dot.org",
		"":               "",
		"abc.re":         "first pattern",
		"a.b.re":         "second pattern",
		"nothing.at.all": "none",
	}
	for host, want := range tests {
		found, ok, err := n.Find(host)
		if err != nil {
			t.Fatal(err)
		}
		got := found.To
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
		if (found.Regexp != nil) != (found.Groups != nil) {
			t.Errorf("%q: groups %v without their expression", host, found.Groups)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a.test": true, "*.test": true, "www.*": true, "": true, "_": true, ".test": true,
		"a*.test": false, "*": false, "a.*.test": false, "*.*": false, "www*": false, "a..b": false,
	} {
		if got := route.ValidName(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}
