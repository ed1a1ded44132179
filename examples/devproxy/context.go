package main

import (
	"fmt"
	"regexp"
	"strings"
)

// matcher is the paths of a rule: prefixes, globs (with *, ? or **), and exceptions from them
// (!). A path matches if it matches one of the former and none of the latter.
type matcher struct {
	prefixes []string
	globs    []*regexp.Regexp
	except   []*regexp.Regexp
}

func newMatcher(list []string) (*matcher, error) {
	c := &matcher{}
	for _, text := range list {
		pattern, exception := strings.CutPrefix(text, "!")
		if !exception && !strings.ContainsAny(pattern, "*?") {
			if !strings.HasPrefix(pattern, "/") {
				return nil, fmt.Errorf("%q does not begin with /", text)
			}
			c.prefixes = append(c.prefixes, pattern)
			continue
		}
		re, err := glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		if exception {
			c.except = append(c.except, re)
		} else {
			c.globs = append(c.globs, re)
		}
	}
	if len(c.prefixes)+len(c.globs) == 0 {
		return nil, fmt.Errorf("%q has exceptions alone", list)
	}
	return c, nil
}

func (c *matcher) fits(path string) bool {
	for _, re := range c.except {
		if re.MatchString(path) {
			return false
		}
	}
	for _, prefix := range c.prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	for _, re := range c.globs {
		if re.MatchString(path) {
			return true
		}
	}
	return false
}

// glob compiles a pattern: * is anything but a slash, ** anything at all, ? one character except
// a slash.
func glob(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(".*")
			i++
		case pattern[i] == '*':
			b.WriteString("[^/]*")
		case pattern[i] == '?':
			b.WriteString("[^/]")
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	b.WriteString("$")
	return regexp.Compile(b.String())
}
