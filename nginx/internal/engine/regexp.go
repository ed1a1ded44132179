package engine

import (
	"errors"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// pattern compiles a regular expression. What of PCRE is not supported is an error at load, with a text that does not blame the
// expression.
func pattern(d *conf.Directive, text string, noCase bool) (*pcre.Regexp, error) {
	re, err := pcre.Compile(text, noCase)
	var wrong *pcre.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return nil, d.Errorf("pcre2_compile() failed: %s in \"%s\"", wrong.Text, text)
	case err != nil:
		return nil, d.Errorf("regular expression \"%s\" is not supported by culvert yet (%s)", text, err)
	}
	return re, nil
}

// namePattern removes the modifier of a regular expression of server_name or map.
func namePattern(s string) (text string, noCase, ok bool) {
	if text, ok = strings.CutPrefix(s, "~*"); ok {
		return text, true, true
	}
	text, ok = strings.CutPrefix(s, "~")
	return text, false, ok
}

// logPattern logs that a regular expression was given up.
func (x *exchange) logPattern(err error) { x.logAt(levelAlert, err.Error(), "") }

// failedPattern returns the status of a request for which a regular expression was given up, and logs it; 0 if none was. What
// depends on the expression is not known, so that nothing may be served by it.
func (x *exchange) failedPattern() int {
	err := x.TakeFailure()
	if err == nil {
		return 0
	}
	x.logPattern(err)
	return http.StatusInternalServerError
}

// match returns what a regular expression captures of a text, nil if it does not match. If it was given up, the request fails.
func (x *exchange) match(re *pcre.Regexp, text string) []string {
	groups, err := re.Find(text)
	if err != nil {
		x.Fail(err)
	}
	return groups
}

// matchResponse is match for a request that has a response already, which a failure only leaves unchanged.
func (x *exchange) matchResponse(re *pcre.Regexp, text string) []string {
	groups, err := re.Find(text)
	if err != nil {
		x.logPattern(err)
	}
	return groups
}
