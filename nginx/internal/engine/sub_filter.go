package engine

import (
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/replace"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// subModule replaces texts in responses (ngx_http_sub_filter_module.c).
var subModule = module{
	directives: []directive{
		{name: "sub_filter", repeatable: true, compile: subFilter},
		{name: "sub_filter_last_modified", compile: setFlag(subSlot, func(s *subSettings) *bool { return &s.lastModified })},
		{name: "sub_filter_once", compile: setFlag(subSlot, func(s *subSettings) *bool { return &s.once })},
		{name: "sub_filter_types", compile: subFilterTypes},
	},
	merge:  makeSubFilter,
	active: func(l *level) bool { return subSlot.of(l).made != nil },
	hooks:  hooks{body: replaceTexts},
}

var subSlot = newSlot(subSettings{types: []string{"text/html"}, once: true})

// subSettings are the sub_filter directives (ngx_http_sub_filter_module.c).
type subSettings struct {
	pairs        []subPair
	types        []string // nil: all
	once         bool
	lastModified bool
	made         culvert.Filter
}

// subState is that of one response.
type subState struct {
	replaced [][]subPair // by the filters around the one that is made next
}

type subPair struct{ from, to vars.Value }

// subFilter compiles "sub_filter string replacement".
func subFilter(c *compiler, l *level, d *conf.Directive) (err error) {
	s := subSlot.edit(l)
	if l.first("sub_filter") {
		s.pairs = nil
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
	s.pairs = append(s.pairs, pair)
	return nil
}

func subFilterTypes(_ *compiler, l *level, d *conf.Directive) error {
	subSlot.edit(l).types = mediaTypes([]string{"text/html"}, d.Args)
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
func isOneOf(types []string, contentType string) bool {
	if types == nil {
		return true
	}
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	for _, want := range types {
		if t == want {
			return true
		}
	}
	return false
}

// changes reports whether responses of a type are changed.
func (s *subSettings) changes(contentType string) bool {
	return s.made != nil && isOneOf(s.types, contentType)
}

// makeSubFilter creates the filter of a level that has set something.
func makeSubFilter(_ *compiler, l *level) error {
	if !subSlot.own(l) || len(subSlot.of(l).pairs) == 0 {
		return nil
	}
	s := subSlot.edit(l)
	pairs := s.pairs
	changes := func(r *http.Request, h http.Header) bool {
		here := subSlot.of(exchangeOf(r.Context()).level) // an internal redirect may have led to another level
		return samePairs(here.pairs, pairs) && h.Get("Content-Length") != "0" &&
			h.Get("Content-Encoding") == "" && isOneOf(here.types, h.Get("Content-Type"))
	}
	s.made = filters.OnResponse(filters.ResponseHooks{
		Header: func(r *http.Request, status int, h http.Header) {
			if status >= 200 && changes(r, h) {
				subSlot.of(exchangeOf(r.Context()).level).removeContentFields(h)
			}
		},
		Body: func(r *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
			if !changes(r, h) {
				return nil
			}
			x := exchangeOf(r.Context())
			return subSlot.of(x.level).writer(x, w)
		},
	})
	return nil
}

// replaceTexts returns the level's filter.
func replaceTexts(x *exchange) culvert.Filter {
	s := subSlot.of(x.level)
	if replacing(x, s.pairs) {
		return nil
	}
	return func(next http.Handler) http.Handler {
		filter := s.made(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x.sub.replaced = append(x.sub.replaced, s.pairs)
			defer func() { x.sub.replaced = x.sub.replaced[:len(x.sub.replaced)-1] }()
			filter.ServeHTTP(w, r)
		})
	}
}

// samePairs reports whether one level has inherited its pairs from the other, or both from a
// third.
func samePairs(a, b []subPair) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// replacing reports whether an enclosing filter already makes these replacements in x's response:
// an internal redirect has led here.
func replacing(x *exchange, these []subPair) bool {
	return slices.ContainsFunc(x.sub.replaced, func(pairs []subPair) bool { return samePairs(pairs, these) })
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
	httpheader.WeakenETag(h)
}

func (s *subSettings) writer(x *exchange, w io.Writer) io.WriteCloser {
	pairs := make([]replace.Pair, 0, len(s.pairs))
	for _, p := range s.pairs {
		if from := p.from.String(&x.Request); from != "" {
			pairs = append(pairs, replace.Pair{From: from, To: p.to.String(&x.Request)})
		}
	}
	return replace.NewWriter(w, s.once, pairs)
}
