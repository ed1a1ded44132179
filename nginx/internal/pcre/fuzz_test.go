package pcre

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// No pattern makes the translation or a match fail in another way than by an error, and both translations of a pattern match the
// same texts.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{
		`^/a(\d+)$`, `(?<x>a)\k<x>`, `[[:alpha:]\w-]*?`, `(?x) a # b`, `(?i:a|b)++`, `\Qa\E\x{41}\101`, `[^]a-c\]]{2,3}`, `(?^s:.)\Z`, `((a)|b)*$`,
	} {
		f.Add(pattern, "aabB-/a12\n", false)
	}
	f.Fuzz(func(t *testing.T, pattern, subject string, fold bool) {
		if len(pattern) > 200 || len(subject) > 200 {
			return
		}
		re, err := Compile(pattern, fold)
		if err != nil {
			return
		}
		groups, err := re.Find(subject)
		var limit *LimitError
		switch {
		case errors.As(err, &limit):
			return
		case err != nil:
			t.Fatalf("%q in %q: %v", pattern, subject, err)
		case groups != nil && len(groups) != len(re.Names()):
			t.Fatalf("%q in %q: %d groups of %d", pattern, subject, len(groups), len(re.Names()))
		}
		compareTranslations(t, pattern, subject, fold, groups != nil)
	})
}

// compareTranslations compares a match with that of the other library. Only bytes of ASCII are characters to both.
func compareTranslations(t *testing.T, pattern, subject string, fold, want bool) {
	tr, err := translate(pattern)
	if err != nil || tr.backtracks || strings.ContainsFunc(pattern+subject, func(r rune) bool { return r > '~' }) || strings.Contains(strings.ToLower(pattern), `\p`) {
		return
	}
	prefix := ""
	if fold {
		prefix = "(?i)"
	}
	if _, err := regexp.Compile(prefix + tr.plain()); err != nil {
		return // it is too large
	}
	other, err := regexp2.Compile(prefix + string(tr.back))
	if err != nil {
		t.Fatalf("%q is %q, and %q is refused: %v", pattern, tr.plain(), tr.back, err)
	}
	other.MatchTimeout = limit
	if got, err := other.MatchString(subject); err == nil && got != want {
		t.Errorf("%q matches %q: %v as %q, %v as %q", pattern, subject, want, tr.plain(), got, tr.back)
	}
}
