package engine

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/response"
)

// phases are the hooks of the modules that are active on a level, by phase, in the order of the
// modules.
type phases struct {
	postRead   []func(*exchange) int
	located    []func(*exchange, http.ResponseWriter) int
	rewrite    []func(*exchange, http.ResponseWriter) (status int, changed, done bool)
	preaccess  []func(*exchange) int
	access     []func(*exchange, http.ResponseWriter) (verdict, int)
	precontent []func(*exchange, http.ResponseWriter) (status int, done bool)
	around     []func(*exchange) culvert.Filter
	content    []func(*exchange, http.ResponseWriter) (status int, done bool)
	header     []func(*exchange, http.Header)
	body       []func(*exchange) culvert.Filter
	write      func(*exchange, io.Writer) io.WriteCloser
	log        []func(*exchange)
}

func phasesOf(list []*module) *phases {
	p := new(phases)
	for _, m := range list {
		p.postRead = with(p.postRead, m.postRead, m.postRead != nil)
		p.located = with(p.located, m.located, m.located != nil)
		p.rewrite = with(p.rewrite, m.rewrite, m.rewrite != nil)
		p.preaccess = with(p.preaccess, m.preaccess, m.preaccess != nil)
		p.access = with(p.access, m.access, m.access != nil)
		p.precontent = with(p.precontent, m.precontent, m.precontent != nil)
		p.around = with(p.around, m.around, m.around != nil)
		p.content = with(p.content, m.content, m.content != nil)
		p.header = with(p.header, m.header, m.header != nil)
		p.body = with(p.body, m.body, m.body != nil)
		p.log = with(p.log, m.log, m.log != nil)
		if m.write != nil {
			p.write = m.write
		}
	}
	return p
}

// phasesOf returns the phases of a level. Those in which the same modules are active share them.
func (c *compiler) phasesOf(l *level) *phases {
	var active []*module
	key := make([]byte, len(c.modules))
	for i, m := range c.modules {
		if m.active == nil || m.active(l) {
			active = append(active, m)
			key[i] = 1
		}
	}
	p, ok := c.phases[string(key)]
	if !ok {
		p = phasesOf(active)
		c.phases[string(key)] = p
	}
	return p
}

// with returns the hooks and one more, if a module has it.
func with[F any](hooks []F, hook F, has bool) []F {
	if has {
		return append(hooks, hook)
	}
	return hooks
}

// filtered calls serve with a writer that applies filters, the first one being next to it.
func (x *exchange) filtered(filters []func(*exchange) culvert.Filter, w http.ResponseWriter, serve contentFunc) int {
	var inner *filteredContent
	var handler http.Handler
	for _, of := range filters {
		filter := of(x)
		if filter == nil {
			continue
		}
		if inner == nil {
			inner = &filteredContent{x: x, serve: serve}
			handler = inner
		}
		handler = filter(handler)
	}
	if inner == nil {
		return serve(x, w)
	}
	handler.ServeHTTP(w, x.HTTP)
	return inner.status
}

// contentFunc sends a response and returns 0, or returns the status of an error page.
type contentFunc func(x *exchange, w http.ResponseWriter) int

// filteredContent is the handler inside filters.
type filteredContent struct {
	x      *exchange
	serve  contentFunc
	status int
}

func (c *filteredContent) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.x.undecided = false
	c.status = c.serve(c.x, w)
	c.x.undecided = c.status != 0
}

// once returns a filter that changes the content of x's response, whichever level makes it: an
// internal redirect may lead through several that have the filter. decided is its state in x. open
// is called with the final header, under the level that has made the response. It may change the
// header, and returns the transform of the body; nil for none.
func (x *exchange) once(decided *bool, open func(status int, h http.Header) func(io.Writer) io.WriteCloser) culvert.Filter {
	var transform func(io.Writer) io.WriteCloser
	return filters.OnResponse(filters.ResponseHooks{
		Header: func(_ *http.Request, status int, h http.Header) {
			if status >= 200 && !x.undecided && !*decided {
				*decided = true
				if x.errStatus != 0 { // a writer around this one sends it
					status = x.errStatus
				}
				transform = open(status, h)
			}
		},
		Body: func(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
			switch {
			case transform == nil:
				return nil
			case x.HTTP.Method == http.MethodHead:
				return response.Discard
			}
			return transform(w)
		},
	})
}
