package engine

import (
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// errorPageModule sends the pages of errors.
var errorPageModule = module{
	directives: []directive{
		{name: "error_page", repeatable: true, compile: errorPage},
		{name: "recursive_error_pages", compile: setFlag(errorPageSlot, func(s *errorPageSettings) *bool { return &s.recursive })},
	},
}

type errorPageSettings struct {
	pages     []errorPageRule
	recursive bool // an error on the way to a page has a page, too
}

var errorPageSlot = newSlot(errorPageSettings{})

// keepStatus sends an error page with the error's own status.
const keepStatus = -1

// errorPageRule is one error_page: codes, perhaps "=" or "=code", and a path,
// a named location or a URL.
type errorPageRule struct {
	codes     []int
	overwrite int // keepStatus, or 0 for the page's own, or the status
	target    vars.Value
}

// errorPage compiles "error_page code ... [=[response]] uri".
func errorPage(c *compiler, l *level, d *conf.Directive) error {
	s := errorPageSlot.edit(l)
	if l.first("error_page") {
		s.pages = nil
	}
	last := len(d.Args) - 1
	rule := errorPageRule{overwrite: keepStatus}
	if strings.HasPrefix(d.Args[last], "=") {
		return d.Errorf("invalid value \"%s\"", d.Args[last])
	}
	codes := d.Args[:last]
	if n := len(codes) - 1; strings.HasPrefix(codes[n], "=") {
		if n == 0 {
			return d.Errorf("invalid value \"%s\"", codes[0])
		}
		text := codes[n][1:]
		code, ok := conf.Number(text)
		if text != "" && !ok {
			return d.Errorf("invalid value \"%s\"", codes[n])
		}
		rule.overwrite, codes = code, codes[:n]
	}
	for _, text := range codes {
		code, ok := conf.Number(text)
		switch {
		case !ok || code == 499:
			return d.Errorf("invalid value \"%s\"", text)
		case code < 300 || code > 599:
			return d.Errorf("value \"%s\" must be between 300 and 599", text)
		}
		rule.codes = append(rule.codes, code)
	}
	var err error
	if rule.target, err = c.value(d, d.Args[last]); err != nil {
		return err
	}
	s.pages = append(s.pages, rule)
	return nil
}

// pageFor returns the first rule for the status; nil if there is none.
func (s *errorPageSettings) pageFor(status int) *errorPageRule {
	for i := range s.pages {
		if slices.Contains(s.pages[i].codes, status) {
			return &s.pages[i]
		}
	}
	return nil
}

// serve serves the page (ngx_http_send_error_page).
func (e *errorPageRule) serve(x *exchange) int {
	switch {
	case e.overwrite != keepStatus:
		x.errStatus, x.Status = e.overwrite, e.overwrite
	case neverSent(x.errStatus):
		x.errStatus, x.Status = http.StatusBadRequest, http.StatusBadRequest
	}
	target := e.target.String(&x.Request)
	if status := x.failedPattern(); status != 0 {
		x.failed = true // this page can't be sent for it either
		return status
	}
	w := x.w
	if x.errStatus != 0 {
		w = &statusWriter{ResponseWriter: x.w, status: x.errStatus}
	}
	switch {
	case strings.HasPrefix(target, "/"):
		uri, args, _ := strings.Cut(target, "?")
		if x.HTTP.Method != http.MethodHead {
			becomeGET(x)
		}
		return x.redirect(w, uri, args)
	case strings.HasPrefix(target, "@"):
		return x.redirectNamed(w, target)
	}
	if !isRedirect(x.errStatus) {
		x.errStatus = http.StatusFound
	}
	x.w.Header().Set("Location", target)
	x.madeAbsolute = false // the Location that it replaces may have been
	if x.refreshes(x.errStatus, true) {
		x.refresh(x.w)
	} else {
		builtinPage(x, x.w, x.errStatus)
	}
	return 0
}

// becomeGET turns the request into a GET without content: its content was meant for the location
// that failed. So were the credentials of a CONNECT, which are a proxy's.
func becomeGET(x *exchange) {
	r := x.HTTP.Clone(x.HTTP.Context())
	if r.Method == http.MethodConnect {
		r.Header.Del("Authorization")
	}
	r.Method, r.Body, r.ContentLength, r.TransferEncoding = http.MethodGet, http.NoBody, 0, nil
	r.Header.Del("Content-Length")
	x.HTTP = r
}

func isRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// statusWriter sends an error page with the error's status. Interim responses pass unchanged, and
// so does everything that http.ResponseController finds through Unwrap.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Discards reports whether an outer writer discards the content, so that the proxy need not wait for it.
func (w *statusWriter) Discards() bool { return response.Discards(w.ResponseWriter) }

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if status >= 200 {
		w.wrote = true
		status = w.status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(p)
}
