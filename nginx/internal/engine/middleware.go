package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/culvert-go/culvert/nginx/conf"
)

// middlewareSettings are the program's directives of a level, by their indexes in Extensions.Directives.
type middlewareSettings struct {
	lists [][]Occurrence
	made  []*middleware // nil where a directive does not apply
}

var middlewareSlot = newSlot(middlewareSettings{})

// middleware is what a directive of the program's makes of the blocks that have it in common.
type middleware struct {
	name    string
	handler http.Handler // with a continuation inside
}

// occurrence compiles the program's directive with an index. Directives on an inner level replace those of the outer levels.
func occurrence(index int) compileFunc {
	return func(c *compiler, l *level, d *conf.Directive) error {
		s := middlewareSlot.edit(l)
		if l.first(d.Name) {
			s.lists = slices.Clone(s.lists)
			for len(s.lists) <= index {
				s.lists = append(s.lists, nil)
			}
			s.lists[index] = nil
		}
		s.lists[index] = append(s.lists[index], Occurrence{d, c})
		return nil
	}
}

// makeMiddleware has the program make the middleware of a level's own directives.
func (e *Extensions) makeMiddleware(_ *compiler, l *level) error {
	for i, d := range e.Directives {
		if !l.set[d.Name] {
			continue
		}
		s := middlewareSlot.edit(l)
		made, err := d.make(s.lists[i])
		if err != nil {
			return err
		}
		s.made = slices.Clone(s.made)
		for len(s.made) <= i {
			s.made = append(s.made, nil)
		}
		s.made[i] = made
	}
	return nil
}

// make has the program make its middleware, nil for none. An error without a place gets that of the first of list.
func (d *Directive) make(list []Occurrence) (*middleware, error) {
	filter, err := d.Middleware(list)
	if err != nil {
		var placed *conf.Error
		if errors.As(err, &placed) {
			return nil, placed
		}
		return nil, list[0].Errorf("%s in \"%s\" directive", err, d.Name)
	}
	if filter == nil {
		return nil, nil
	}
	m := &middleware{name: d.Name}
	m.handler = filter(continuation{m})
	return m, nil
}

// throughMiddleware serves the request inside the middleware of list that is not around it yet: an internal redirect inside of it
// may have led to another level that has it.
func (x *exchange) throughMiddleware(list []*middleware, w http.ResponseWriter) int {
	for i, m := range list {
		if m != nil && !slices.Contains(x.within, m) {
			return x.serveWithin(m, list[i+1:], w)
		}
	}
	return x.locationContent(w)
}

// serveWithin serves the request inside m, and inside the middleware of rest.
func (x *exchange) serveWithin(m *middleware, rest []*middleware, w http.ResponseWriter) int {
	x.within = append(x.within, m)
	defer func() { x.within = x.within[:len(x.within)-1] }()
	r := x.programRequest()
	f := &passage{x: x, of: m, rest: rest, url: *r.URL}
	defer f.end()
	r = r.WithContext(context.WithValue(r.Context(), m, f))
	body := x.startBody(w, r)
	f.body = r.Body
	return x.callProgram("the middleware of directive \""+m.name+"\"", m.handler, w, r, body)
}

// continuation is the next handler of a middleware, for all requests.
type continuation struct{ of *middleware }

func (c continuation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, _ := r.Context().Value(c.of).(*passage)
	if f == nil {
		panic("the context of the request that the middleware has passed on is not that of the request which it was called with, or made of it")
	}
	f.serve(w, r)
}

// passage is the way of one request through a middleware.
type passage struct {
	x    *exchange
	of   *middleware
	rest []*middleware
	url  url.URL       // what the middleware was called with
	body io.ReadCloser // too

	mu    sync.Mutex // held while the request is served inside, which may be on another goroutine
	ended bool
}

// serve serves r, a request that the middleware has passed on, with error pages.
func (f *passage) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	x := f.x
	former, client := x.HTTP, x.w
	ours, restore := f.adopt(r)
	x.w = w
	defer func() {
		restore()
		x.w = client
		if x.HTTP == ours { // an error page may have made another of it
			x.HTTP = former
		}
	}()
	status := http.StatusBadRequest
	if !climbs(x.URI) {
		status = x.throughMiddleware(f.rest, w)
	}
	for status != 0 {
		status = x.special(status)
	}
}

// end waits for what is served inside, and lets nothing be served any more.
func (f *passage) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
}

// adopt makes r the exchange's request, and returns it; restore is called when it was served. A changed path or query is one as of a rewrite inside the location.
func (f *passage) adopt(r *http.Request) (adopted *http.Request, restore func()) {
	x := f.x
	if r.URL.Path != f.url.Path || r.URL.RawQuery != f.url.RawQuery {
		x.URI, x.Args = r.URL.Path, r.URL.RawQuery
		if !strings.HasPrefix(x.URI, "/") {
			x.URI = "/" + x.URI
		}
		x.Internal, x.uriChanged, x.uriRewritten = true, true, true
	}
	adopted = r.WithContext(r.Context())
	adopted.URL = x.HTTP.URL
	restore = f.adoptBody(adopted)
	x.HTTP = adopted
	return adopted, restore
}

// climbs reports whether a path leads out of a folder.
func climbs(path string) bool { return slices.Contains(strings.Split(path, "/"), "..") }
