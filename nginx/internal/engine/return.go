package engine

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// returnRule is a return: a status with a text or a URL.
type returnRule struct {
	status int
	text   vars.Value
	given  bool // there is a text
}

// returnDirective compiles "return code", "return code text", "return code
// URL" and "return URL".
func returnDirective(c *compiler, l *level, d *conf.Directive) error {
	rule := &returnRule{status: http.StatusFound}
	text, hasText := d.Args[0], true
	status, ok := conf.Number(text)
	switch {
	case ok && len(d.Args) == 2:
		rule.status, text = status, d.Args[1]
	case ok:
		rule.status, hasText = status, false
	case len(d.Args) == 2 || !isURL(text):
		return d.Errorf("invalid return code \"%s\"", text)
	}
	if rule.status > 999 {
		return d.Errorf("invalid return code \"%s\"", d.Args[0])
	}
	if hasText {
		v, err := c.value(d, text)
		if err != nil {
			return err
		}
		rule.text, rule.given = v, true
	}
	addStep(l, func(_ *exchange, run *scriptRun) { run.done, run.returns = true, rule })
	return nil
}

// isURL reports whether s is a URL for a return without a code.
func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "$scheme")
}

// serve sends the response. A status from 400 without a text is an error, for the error pages;
// any other is sent as it is (ngx_http_send_response).
func (ret *returnRule) serve(x *exchange, w http.ResponseWriter) int {
	switch {
	case ret.status >= 400 && !ret.given, ret.status == 444:
		return ret.status
	}
	continueBody(x, w)
	if status := discardBody(x); status != 0 {
		return status
	}
	if isRedirect(ret.status) {
		to := ret.text.String(&x.Request)
		if status := x.failedPattern(); status != 0 {
			return status
		}
		return redirectAs(x, w, ret.status, to)
	}
	if ret.status < 200 || ret.status == http.StatusNoContent || ret.status == http.StatusNotModified {
		if x.errStatus != 0 && x.errStatus != ret.status { // an error's page: its status may have content
			setContentType(x, w.Header())
			w.Header().Set("Content-Length", "0")
		}
		w.WriteHeader(max(ret.status, http.StatusOK))
		return 0
	}
	x.Status = cmp.Or(x.errStatus, ret.status) // the text may contain $status
	text := ret.text.String(&x.Request)
	if status := x.failedPattern(); status != 0 {
		return status
	}
	if x.proxy.kept == nil || len(w.Header()["Content-Type"]) == 0 { // else it is that of an upstream's X-Accel-Redirect
		setContentType(x, w.Header())
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(ret.status)
	if x.HTTP.Method != http.MethodHead && text != "" {
		_, _ = w.Write([]byte(text))
	}
	return 0
}
