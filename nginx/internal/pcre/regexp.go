// Package pcre matches texts with regular expressions in the syntax of PCRE, as nginx has them: bytes, without UTF.
//
// A pattern runs on Go's package regexp, in time that is linear in the text, whenever it can be expressed there. What that package
// lacks, look-around, back references, atomic groups and possessive quantifiers, runs on a library that backtracks. There a
// short text may take exponential time, so that such a match has a limit.
package pcre

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// limit is about how long a match by backtracking may take; the library looks at its clock every tenth of a second, on a goroutine that
// ends a second after the last match.
const limit = 100 * time.Millisecond

// Regexp is a compiled regular expression. It is safe for concurrent use by multiple goroutines.
type Regexp struct {
	text   string
	names  []string
	linear *regexp.Regexp // nil: backs is used
	// newline is linear for texts that end in a line feed, in front of which "$" and \Z match, too; nil if there is neither.
	newline *regexp.Regexp
	backs   *regexp2.Regexp
}

// LimitError is the error of a match by backtracking that was given up: it has used too much time or memory.
type LimitError struct {
	// Pattern is the regular expression, and Subject the text.
	Pattern, Subject string
}

// maxLogged bounds what of a subject is in the text of an error.
const maxLogged = 256

// Error returns the error in nginx's words for the same.
func (e *LimitError) Error() string {
	subject := e.Subject
	if len(subject) > maxLogged {
		subject = subject[:maxLogged] + "..."
	}
	return fmt.Sprintf("pcre2_match() failed: -47 on %q using %q", subject, e.Pattern)
}

// SyntaxError is the error of a pattern that PCRE does not accept either. Its text is PCRE's.
type SyntaxError struct{ Text string }

// Error returns Text.
func (e *SyntaxError) Error() string { return e.Text }

// Compile compiles a pattern. With fold, it does not distinguish the cases of letters. An error other than a *SyntaxError says what of a
// valid pattern is not supported.
func Compile(text string, fold bool) (*Regexp, error) {
	t, err := translate(text)
	if err != nil {
		return nil, err
	}
	re := &Regexp{text: text, names: t.names}
	prefix := ""
	if fold {
		prefix = "(?i)"
	}
	if !t.backtracks {
		if re.linear, err = regexp.Compile(prefix + t.plain()); err == nil {
			if t.endsLine {
				re.newline, err = regexp.Compile(prefix + t.withNewline())
			}
			return re, err
		}
	}
	if re.backs, err = regexp2.Compile(prefix + string(t.back)); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	re.backs.MatchTimeout = limit
	return re, nil
}

// String returns the pattern.
func (re *Regexp) String() string { return re.text }

// Names returns the names of the groups by their numbers, "" for one without a name; the first is that of the whole match.
func (re *Regexp) Names() []string { return re.names }

// Groups returns the number of groups.
func (re *Regexp) Groups() int { return len(re.names) - 1 }

// Backtracks reports whether matches have a limit, so that they can fail.
func (re *Regexp) Backtracks() bool { return re.linear == nil }

// Find returns the leftmost match in s and what its groups have captured, "" for one that has no part in it; nil if there is no
// match. The error, a *LimitError, says that this is not known.
func (re *Regexp) Find(s string) (groups []string, err error) {
	if re.linear != nil {
		return re.linearFor(s).FindStringSubmatch(s), nil
	}
	m, err := re.backs.FindRunesMatch(units(s))
	if err != nil {
		return nil, &LimitError{re.text, s}
	}
	if m == nil {
		return nil, nil
	}
	groups = make([]string, len(re.names))
	for i := range groups {
		if g := m.GroupByNumber(i); g != nil && len(g.Captures) > 0 {
			groups[i] = s[g.RuneIndex : g.RuneIndex+g.RuneLength]
		}
	}
	return groups, nil
}

// Matches reports whether there is a match in s. The error is like that of Find.
func (re *Regexp) Matches(s string) (bool, error) {
	if re.linear != nil {
		return re.linearFor(s).MatchString(s), nil
	}
	matches, err := re.backs.MatchRunes(units(s))
	if err != nil {
		return false, &LimitError{re.text, s}
	}
	return matches, nil
}

func (re *Regexp) linearFor(s string) *regexp.Regexp {
	if re.newline != nil && strings.HasSuffix(s, "\n") {
		return re.newline
	}
	return re.linear
}

// highUnit stands for byte 0 where bytes are characters of the library that backtracks: bytes outside of ASCII become characters
// for private use, which are in no class, and have no case.
const highUnit = 0xf700

// unit returns the character for a byte.
func unit(b byte) rune {
	if b < 0x80 {
		return rune(b)
	}
	return highUnit + rune(b)
}

// units returns a text of which each byte is a character.
func units(s string) []rune {
	list := make([]rune, len(s))
	for i := range len(s) {
		list[i] = unit(s[i])
	}
	return list
}
