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

// knownStatus is called before the header of a response is sent. If that, or a filter of the content, depends on a regular
// expression that was given up, the response is a 500 without content in its place.
func knownStatus(r *http.Request, status int, h http.Header) int {
	x := exchangeOf(r.Context())
	if x.engine.backtracks {
		x.Status = status
		evaluateHeaders(x, h)
	}
	if x.failedPattern() == 0 {
		return status
	}
	x.withheld = true
	clear(h)
	h.Set("Content-Length", "0")
	return http.StatusInternalServerError
}

// evaluateHeaders evaluates what the configuration adds to the final header, which is h so far.
func evaluateHeaders(x *exchange, h http.Header) {
	if x.proxy.responded {
		hideHeaders(x, h.Clone())
	}
	for _, field := range *addHeaderSlot.of(x.level) {
		if field.applies(x) {
			_ = field.value.String(&x.Request)
		}
	}
	if rule := expiresSlot.of(x.level); rule.variable != nil {
		_ = rule.variable.String(&x.Request)
	}
}

// breakOffUnknown ends a response, which can't be replaced any more, if a part of it depends on a regular expression that was
// given up.
func (x *exchange) breakOffUnknown() {
	if !x.withheld && x.failedPattern() != 0 {
		panic(http.ErrAbortHandler)
	}
	_ = x.TakeFailure() // what was withheld depends on it once more
}
