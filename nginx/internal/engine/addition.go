package engine

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/nginx/conf"
)

// additionModule puts the content of subrequests around that of a response
// (ngx_http_addition_filter_module.c).
var additionModule = module{
	directives: []directive{
		{name: "add_after_body", compile: setText(additionSlot, func(s *additionSettings) *string { return &s.after })},
		{name: "add_before_body", compile: setText(additionSlot, func(s *additionSettings) *string { return &s.before })},
		{name: "addition_types", compile: additionTypes},
	},
	active: func(l *level) bool { return additionSlot.of(l).adds() },
	hooks:  hooks{body: addContent},
}

var additionSlot = newSlot(additionSettings{types: []string{"text/html"}})

type additionSettings struct {
	before, after string // URIs; "" is none
	types         []string
}

func (s *additionSettings) adds() bool { return s.before != "" || s.after != "" }

// changes reports whether content is added to responses of a type.
func (s *additionSettings) changes(contentType string) bool {
	return s.adds() && isOneOf(s.types, contentType)
}

func additionTypes(_ *compiler, l *level, d *conf.Directive) error {
	additionSlot.edit(l).types = mediaTypes([]string{"text/html"}, d.Args)
	return nil
}

// addContent adds to the final content, which the filters of subrequests have not changed: those
// have filters of their own.
func addContent(x *exchange) culvert.Filter {
	if x.main != nil {
		return nil
	}
	return x.once(&x.added, func(status int, h http.Header) func(io.Writer) io.WriteCloser {
		s := additionSlot.of(x.level)
		if status != http.StatusOK || !s.changes(h.Get("Content-Type")) {
			return nil
		}
		h.Del("Content-Length")
		h.Del("Accept-Ranges")
		httpheader.WeakenETag(h)
		return func(w io.Writer) io.WriteCloser { return &addedTo{w: w, x: x, before: s.before, after: s.after} }
	})
}

// addedTo writes what is added around the content.
type addedTo struct {
	w             io.Writer
	x             *exchange
	before, after string // what is still to be written
}

// Write implements io.Writer.
func (a *addedTo) Write(p []byte) (int, error) {
	if err := a.begin(); err != nil {
		return 0, err
	}
	return a.w.Write(p)
}

func (a *addedTo) begin() error {
	uri := a.before
	a.before = ""
	return a.add(uri)
}

func (a *addedTo) add(uri string) error {
	if uri == "" {
		return nil
	}
	sub, err := a.x.subrequest(uri, "", a.w)
	if err != nil {
		return err
	}
	return a.x.include(sub)
}

// Flush sends what comes before the content, too.
func (a *addedTo) Flush() error { return a.begin() }

// Close writes what comes behind the content.
func (a *addedTo) Close() error {
	if err := a.begin(); err != nil {
		return err
	}
	return a.add(a.after)
}
