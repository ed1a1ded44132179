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

// namePattern removes the modifier of a regular expression of server_name or map.
func namePattern(s string) (text string, noCase, ok bool) {
	if text, ok = strings.CutPrefix(s, "~*"); ok {
		return text, true, true
	}
	text, ok = strings.CutPrefix(s, "~")
	return text, false, ok
}
