package engine

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// gzipModule compresses responses (ngx_http_gzip_filter_module.c).
var gzipModule = module{
	directives: []directive{
		{name: "gzip", compile: setFlag(gzipSlot, func(s *gzipSettings) *bool { return &s.on })},
		{name: "gzip_comp_level", compile: gzipCompLevel},
		{name: "gzip_disable", repeatable: true, compile: gzipDisable},
		{name: "gzip_http_version", compile: setWord(gzipSlot, func(s *gzipSettings) *bool { return &s.http10 }, map[string]bool{"1.0": true, "1.1": false})},
		{name: "gzip_min_length", compile: setSize(gzipSlot, func(s *gzipSettings) *int64 { return &s.min })},
		{name: "gzip_proxied", compile: gzipProxied},
		{name: "gzip_types", compile: gzipTypes},
	},
	variables: map[string]variable{"gzip_ratio": nonEmpty(gzipRatio)},
	merge:     makeGzip,
	active:    func(l *level) bool { return gzipSlot.of(l).made != nil },
	hooks:     hooks{body: compress},
}

var gzipSlot = newSlot(gzipSettings{types: []string{"text/html"}, min: 20, level: 1, proxied: []string{"off"}})

// gzipSettings are the gzip directives (ngx_http_gzip_filter_module.c, and
// ngx_http_gzip_ok of ngx_http_core_module.c).
type gzipSettings struct {
	on       bool
	types    []string
	min      int64
	level    int
	proxied  []string
	http10   bool
	disabled []*pcre.Regexp
	made     *gzipFilter // of them; nil where it is off
}

// gzipState is that of one response.
type gzipState struct {
	applies bool  // to this response
	depends bool  // the response depends on whether the client accepts gzip
	counted bool  // vary is known: a filter may have added lines to Vary
	vary    int   // the lines of Vary that it had before
	varies  bool  // and a line in front of them says so
	in      int64 // the length of the content that was passed to the compressor
}

// gzipFilter compresses the responses of the levels that have it.
type gzipFilter struct{ filter culvert.Filter }

func gzipTypes(_ *compiler, l *level, d *conf.Directive) error {
	s := gzipSlot.edit(l)
	s.types = append([]string{"text/html"}, d.Args...)
	if slices.Contains(d.Args, "*") {
		s.types = nil
	}
	return nil
}

func gzipCompLevel(_ *compiler, l *level, d *conf.Directive) error {
	n, err := d.Number()
	if err != nil {
		return err
	}
	if n < 1 || n > 9 {
		return d.Errorf("value must be between 1 and 9")
	}
	gzipSlot.edit(l).level = n
	return nil
}

func gzipProxied(_ *compiler, l *level, d *conf.Directive) error {
	for _, arg := range d.Args {
		if !slices.Contains([]string{"off", "expired", "no-cache", "no-store", "private", "no_last_modified", "no_etag", "auth", "any"}, arg) {
			return d.Errorf("invalid value \"%s\"", arg)
		}
	}
	gzipSlot.edit(l).proxied = d.Args
	return nil
}

// gzipDisable compiles "gzip_disable regex ...", of which "msie6" is a short form.
func gzipDisable(_ *compiler, l *level, d *conf.Directive) error {
	s := gzipSlot.edit(l)
	if l.first("gzip_disable") {
		s.disabled = nil
	}
	for _, arg := range d.Args {
		if arg == "msie6" {
			arg = `MSIE [4-6]\.`
		}
		re, err := pattern(d, arg, true)
		if err != nil {
			return err
		}
		s.disabled = append(s.disabled, re)
	}
	return nil
}

// makeGzip creates the filter of a level that has set something.
func makeGzip(_ *compiler, l *level) error {
	if !gzipSlot.own(l) {
		return nil
	}
	s := gzipSlot.edit(l)
	s.made = nil
	if !s.on {
		return nil
	}
	made, g := &gzipFilter{}, *s
	o := filters.CompressOptions{Encodings: []string{"gzip"}, ContentTypes: matchable(g.types), MinSize: max(g.min, 1), GzipLevel: g.level, When: func(r *http.Request, status int, h http.Header) bool {
		x := exchangeOf(r.Context())
		return gzipSlot.of(x.level).made == made && g.when(x, r, status, h) // an internal redirect may have led to another level
	}}
	if g.types == nil {
		o.ContentTypes = []string{"application/*", "audio/*", "font/*", "image/*", "message/*", "model/*", "multipart/*", "text/*", "video/*"}
	}
	var err error
	if made.filter, err = filters.Compress(o); err != nil {
		return l.at.Errorf("%s", err)
	}
	s.made = made
	return nil
}

// when reports whether nginx compresses a response.
func (g gzipSettings) when(x *exchange, r *http.Request, status int, h http.Header) bool {
	if status != http.StatusOK && status != http.StatusForbidden && status != http.StatusNotFound {
		return false
	}
	x.Status = status
	setExpires(x, h) // gzip_proxied needs its result; a second call at the end has the same result
	x.dependsOnGzip(h)
	x.gzip.applies = g.forClient(r, h)
	return x.gzip.applies
}

// plainBytes counts the bytes that are passed to the compressor, for $gzip_ratio.
type plainBytes struct {
	http.ResponseWriter
	x *exchange
}

func (w *plainBytes) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Discards reports whether an outer writer discards the content, so that the proxy need not wait for it.
func (w *plainBytes) Discards() bool { return response.Discards(w.ResponseWriter) }

func (w *plainBytes) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.x.gzip.in += int64(n)
	return n, err
}

// ReadFrom keeps the fast path of content that is not compressed.
func (w *plainBytes) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	w.x.gzip.in += n
	return n, err
}

// gzipRatio returns the ratio of the content's length before and after compression, rounded to
// hundredths (ngx_http_gzip_ratio_variable).
func gzipRatio(x *exchange) string {
	compressed := x.gzip.applies && slices.Equal(x.Header["Content-Encoding"], []string{"gzip"})
	if !compressed || x.gzip.in == 0 || x.BodyBytes == 0 {
		return ""
	}
	n := (x.gzip.in*1000/x.BodyBytes + 5) / 10
	return fmt.Sprintf("%d.%02d", n/100, n%100)
}

func (g gzipSettings) forClient(r *http.Request, h http.Header) bool {
	if !g.http10 && !r.ProtoAtLeast(1, 1) || r.Header["Via"] != nil && !g.forProxies(r, h) {
		return false
	}
	agent := r.UserAgent()
	return !slices.ContainsFunc(g.disabled, func(re *pcre.Regexp) bool {
		matches, err := re.Matches(agent)
		return matches || err != nil
	})
}

// forProxies reports whether gzip_proxied lets a proxy have a compressed response.
func (g gzipSettings) forProxies(r *http.Request, h http.Header) bool {
	allowed := func(name string) bool { return slices.Contains(g.proxied, name) }
	switch {
	case allowed("off"):
		return false
	case allowed("any"), allowed("auth") && r.Header.Get("Authorization") != "":
		return true
	}
	if expires := h.Get("Expires"); expires != "" {
		at, err := http.ParseTime(expires)
		return allowed("expired") && err == nil && at.Before(time.Now())
	}
	if control := strings.Join(h["Cache-Control"], ","); control != "" {
		for _, name := range []string{"no-cache", "no-store", "private"} {
			if allowed(name) && strings.Contains(strings.ToLower(control), name) {
				return true
			}
		}
		return false
	}
	return !(allowed("no_last_modified") && h.Get("Last-Modified") != "" || allowed("no_etag") && h.Get("Etag") != "")
}

// compress returns the level's filter. It counts what is passed to the compressor.
func compress(x *exchange) culvert.Filter {
	made := gzipSlot.of(x.level).made
	if x.main != nil { // its content becomes a part of another
		return nil
	}
	return func(next http.Handler) http.Handler {
		return made.filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&plainBytes{w, x}, r)
		}))
	}
}

// matchable returns the types that a response may have. nginx accepts others, too, and compresses
// nothing for them.
func matchable(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "" || strings.ContainsAny(t, "*;, \t\r\n") })
}
