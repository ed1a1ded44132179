package engine

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
)

// gzipSettings are the gzip directives (ngx_http_gzip_filter_module.c, and
// ngx_http_gzip_ok of ngx_http_core_module.c).
type gzipSettings struct {
	on       bool
	types    []string
	min      int64
	level    int
	proxied  []string
	http10   bool
	disabled []*regexp.Regexp
	made     *gzipFilter // of them; nil where it is off
}

// gzipFilter compresses the responses of the levels that have it.
type gzipFilter struct{ filter culvert.Filter }

func defaultGzip() gzipSettings {
	return gzipSettings{types: []string{"text/html"}, min: 20, level: 1, proxied: []string{"off"}}
}

// gzipDirective compiles one of the gzip directives.
func gzipDirective(_ *compiler, l *level, d *conf.Directive) error {
	g := &l.gzip
	l.first("gzip filter")
	switch d.Name {
	case "gzip":
		g.on = d.Flag()
	case "gzip_types":
		g.types = append([]string{"text/html"}, d.Args...)
		if slices.Contains(d.Args, "*") {
			g.types = nil
		}
	case "gzip_min_length":
		n, ok := conf.Size(d.Args[0])
		if !ok {
			return d.Errorf("\"gzip_min_length\" directive invalid value")
		}
		g.min = n
	case "gzip_comp_level":
		n, ok := conf.Number(d.Args[0])
		if !ok {
			return d.Errorf("\"gzip_comp_level\" directive invalid number")
		}
		if n < 1 || n > 9 {
			return d.Errorf("value must be between 1 and 9")
		}
		g.level = n
	case "gzip_http_version":
		if d.Args[0] != "1.0" && d.Args[0] != "1.1" {
			return d.Errorf("invalid value \"%s\"", d.Args[0])
		}
		g.http10 = d.Args[0] == "1.0"
	case "gzip_proxied":
		return g.setProxied(d)
	case "gzip_disable":
		return g.disable(l, d)
	}
	return nil
}

func (g *gzipSettings) setProxied(d *conf.Directive) error {
	for _, arg := range d.Args {
		if !slices.Contains([]string{"off", "expired", "no-cache", "no-store", "private", "no_last_modified", "no_etag", "auth", "any"}, arg) {
			return d.Errorf("invalid value \"%s\"", arg)
		}
	}
	g.proxied = d.Args
	return nil
}

// disable compiles "gzip_disable regex ...", of which "msie6" is a short form.
func (g *gzipSettings) disable(l *level, d *conf.Directive) error {
	if l.first("gzip_disable") {
		g.disabled = nil
	}
	for _, arg := range d.Args {
		if arg == "msie6" {
			arg = `MSIE [4-6]\.`
		}
		re, err := pattern(d, arg, true)
		if err != nil {
			return err
		}
		g.disabled = append(g.disabled, re)
	}
	return nil
}

// finishGzip creates the filter of a level that has set something.
func (l *level) finishGzip() error {
	if !l.own["gzip filter"] {
		return nil
	}
	g := l.gzip
	l.gzip.made = nil
	if !g.on {
		return nil
	}
	made := &gzipFilter{}
	o := filters.CompressOptions{Encodings: []string{"gzip"}, ContentTypes: matchable(g.types), MinSize: max(g.min, 1), GzipLevel: g.level, When: func(r *http.Request, status int, h http.Header) bool {
		x := exchangeOf(r.Context())
		return x.level.gzip.made == made && g.when(x, r, status, h) // an internal redirect may have led to another level
	}}
	if g.types == nil {
		o.ContentTypes = []string{"application/*", "audio/*", "font/*", "image/*", "message/*", "model/*", "multipart/*", "text/*", "video/*"}
	}
	var err error
	made.filter, err = filters.Compress(o)
	l.gzip.made = made
	return err
}

// when reports whether nginx compresses a response. If only this client prevents it, Vary is set
// all the same.
func (g gzipSettings) when(x *exchange, r *http.Request, status int, h http.Header) bool {
	if status != http.StatusOK && status != http.StatusForbidden && status != http.StatusNotFound {
		return false
	}
	x.Status = status
	x.level.applyExpires(x, h) // gzip_proxied needs its result; a second call at the end has the same result
	ok := g.forClient(r, h)
	if !ok {
		h.Add("Vary", "Accept-Encoding")
	}
	x.compressible = ok
	return ok
}

// plainBytes counts the bytes that are passed to the compressor, for $gzip_ratio.
type plainBytes struct {
	http.ResponseWriter
	x *exchange
}

func (w *plainBytes) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *plainBytes) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.x.GzipIn += int64(n)
	return n, err
}

// ReadFrom keeps the fast path of content that is not compressed.
func (w *plainBytes) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	w.x.GzipIn += n
	return n, err
}

// compressed reports whether gzip has compressed the response.
func (x *exchange) compressed() bool {
	return x.compressible && slices.Equal(x.Header["Content-Encoding"], []string{"gzip"})
}

func (g gzipSettings) forClient(r *http.Request, h http.Header) bool {
	if !g.http10 && !r.ProtoAtLeast(1, 1) || r.Header["Via"] != nil && !g.forProxies(r, h) {
		return false
	}
	agent := r.UserAgent()
	return !slices.ContainsFunc(g.disabled, func(re *regexp.Regexp) bool { return re.MatchString(agent) })
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

func (g *gzipSettings) filter() culvert.Filter {
	if g.made == nil {
		return nil
	}
	return g.made.filter
}

// matchable returns the types that a response may have. nginx accepts others, too, and compresses
// nothing for them.
func matchable(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "" || strings.ContainsAny(t, "*;, \t\r\n") })
}
