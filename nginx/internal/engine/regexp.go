package engine

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// pattern compiles a regular expression. Go's are not PCRE: look-around and back references,
// which Go lacks, are errors at load, with a text that does not blame the expression.
func pattern(d *conf.Directive, text string, noCase bool) (*regexp.Regexp, error) {
	source := text
	if noCase {
		source = "(?i)" + source
	}
	re, err := regexp.Compile(source)
	if err == nil {
		return re, nil
	}
	var e *syntax.Error
	if errors.As(err, &e) {
		if text, ok := pcreErrors[e.Code]; ok {
			return nil, d.Errorf("pcre2_compile() failed: %s in \"%s\"", text, strings.TrimPrefix(source, "(?i)"))
		}
		err = e
	}
	return nil, d.Errorf("regular expression \"%s\" is not supported by culvert yet (%s)", text, err)
}

// pcreErrors are nginx's texts for errors that are errors in PCRE, too.
var pcreErrors = map[syntax.ErrorCode]string{
	syntax.ErrInvalidCharRange:      "range out of order in character class",
	syntax.ErrMissingBracket:        "missing terminating ] for character class",
	syntax.ErrMissingParen:          "missing closing parenthesis",
	syntax.ErrMissingRepeatArgument: "quantifier does not follow a repeatable item",
	syntax.ErrTrailingBackslash:     "\\ at end of pattern",
	syntax.ErrUnexpectedParen:       "unmatched closing parenthesis",
}

// declareCaptures declares the named groups of all regular expressions as variables.
func (c *compiler) declareCaptures(list []*conf.Directive) error {
	for _, d := range list {
		for _, re := range patternsOf(d) {
			compiled, err := pattern(d, re, false)
			if err != nil {
				return err
			}
			for _, name := range compiled.SubexpNames() {
				if name != "" {
					c.scope.DeclareCapture(name)
				}
			}
		}
		if d.Name != "types" {
			if err := c.declareCaptures(mapKeys(d)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mapKeys returns the directives inside d. Those of a map are returned as locations, so that
// their keys are examined.
func mapKeys(d *conf.Directive) []*conf.Directive {
	if d.Name != "map" {
		if conf.HasRows(d.Name) {
			return nil
		}
		return d.Block
	}
	var keys []*conf.Directive
	for _, k := range d.Block {
		keys = append(keys, &conf.Directive{Name: "server_name", Args: []string{k.Name}, File: k.File, Line: k.Line})
	}
	return keys
}

// patternsOf returns the regular expressions among d's arguments.
func patternsOf(d *conf.Directive) []string {
	var found []string
	switch d.Name {
	case "location":
		if kind, name := locationName(d); kind == patternLocation || kind == patternNoCaseLocation {
			found = append(found, name)
		}
	case "rewrite":
		found = append(found, d.Args[0])
	case "if":
		if n := len(d.Args); n == 3 && strings.HasSuffix(strings.TrimSuffix(d.Args[1], "*"), "~") {
			found = append(found, d.Args[2])
		}
	case "server_name":
		for _, name := range d.Args {
			if text, _, ok := namePattern(name); ok {
				found = append(found, text)
			}
		}
	}
	return found
}

// namePattern removes the modifier of a regular expression of server_name or map.
func namePattern(s string) (text string, noCase, ok bool) {
	if text, ok = strings.CutPrefix(s, "~*"); ok {
		return text, true, true
	}
	text, ok = strings.CutPrefix(s, "~")
	return text, false, ok
}
