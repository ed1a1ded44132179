package engine

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/replace"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// subSettings are the sub_filter directives (ngx_http_sub_filter_module.c).
type subSettings struct {
	pairs        []subPair
	types        []string // nil: all
	every        bool     // sub_filter_once off
	lastModified bool
	made         culvert.Filter
}

type subPair struct{ from, to vars.Value }

func defaultSub() subSettings { return subSettings{types: []string{"text/html"}} }

// subFilter compiles "sub_filter string replacement".
func subFilter(c *compiler, l *level, d *conf.Directive) (err error) {
	if l.first("sub_filter") {
		l.sub.pairs = nil
	}
	if d.Args[0] == "" {
		return d.Errorf("empty search pattern")
	}
	var pair subPair
	if pair.from, err = c.value(d, d.Args[0]); err != nil {
		return err
	}
	if pair.to, err = c.value(d, d.Args[1]); err != nil {
		return err
	}
	l.sub.pairs = append(l.sub.pairs, pair)
	return nil
}

func subFilterOnce(_ *compiler, l *level, d *conf.Directive) error {
	l.sub.every = !d.Flag()
	return nil
}

func subFilterTypes(_ *compiler, l *level, d *conf.Directive) error {
	l.sub.types = mediaTypes([]string{"text/html"}, d.Args)
	return nil
}

func subFilterLastModified(_ *compiler, l *level, d *conf.Directive) error {
	l.sub.lastModified = d.Flag()
	return nil
}

// mediaTypes adds the types of a directive to those that always apply; nil is all ("*").
func mediaTypes(always, more []string) []string {
	list := always
	for _, t := range more {
		if t == "*" {
			return nil
		}
		list = append(list, strings.ToLower(t))
	}
	return list
}

// isOneOf reports whether the Content-Type is among the types.
func isOneOf(types []string, h http.Header) bool {
	if types == nil {
		return true
	}
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	t = strings.ToLower(strings.TrimSpace(t))
	for _, want := range types {
		if t == want {
			return true
		}
	}
	return false
}

// changes reports whether responses of a type are changed.
func (s *subSettings) changes(t string) bool {
	return s.made != nil && isOneOf(s.types, http.Header{"Content-Type": {t}})
}

func (s *subSettings) filter() culvert.Filter { return s.made }

// finishSub creates the filter.
func (l *level) finishSub() {
	l.sub.made = nil
	if len(l.sub.pairs) == 0 {
		return
	}
	pairs := l.sub.pairs
	changes := func(r *http.Request, h http.Header) bool {
		here := exchangeOf(r.Context()).level.sub // an internal redirect may have led to another level
		return samePairs(here.pairs, pairs) && h.Get("Content-Length") != "0" &&
			h.Get("Content-Encoding") == "" && isOneOf(here.types, h)
	}
	l.sub.made = filters.OnResponse(filters.ResponseHooks{
		Header: func(r *http.Request, status int, h http.Header) {
			if status >= 200 && changes(r, h) {
				exchangeOf(r.Context()).level.sub.removeContentFields(h)
			}
		},
		Body: func(r *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
			if !changes(r, h) {
				return nil
			}
			x := exchangeOf(r.Context())
			return x.level.sub.writer(x, w)
		},
	})
}

// samePairs reports whether one level has inherited its pairs from the other, or both from a
// third.
func samePairs(a, b []subPair) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// replacing reports whether an enclosing filter already makes l's replacements in x's response.
func (x *exchange) replacing(l *level) bool {
	return slices.ContainsFunc(x.replaced, func(pairs []subPair) bool { return samePairs(pairs, l.sub.pairs) })
}

// removeContentFields removes header fields that describe the unchanged content.
func (s *subSettings) removeContentFields(h http.Header) {
	h.Del("Content-Length")
	h.Del("Accept-Ranges")
	if !s.lastModified {
		h.Del("Last-Modified")
		h.Del("Etag")
		return
	}
	if tag := h.Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		h.Set("Etag", "W/"+tag)
	}
}

func (s *subSettings) writer(x *exchange, w io.Writer) io.WriteCloser {
	pairs := make([]replace.Pair, 0, len(s.pairs))
	for _, p := range s.pairs {
		if from := p.from.String(&x.Request); from != "" {
			pairs = append(pairs, replace.Pair{From: from, To: p.to.String(&x.Request)})
		}
	}
	return replace.NewWriter(w, !s.every, pairs)
}
