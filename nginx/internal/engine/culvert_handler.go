package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
)

// culvertHandlerModule serves locations by handlers of the program that embeds the engine. nginx has no such directive.
var culvertHandlerModule = module{
	directives: []directive{
		{name: "culvert_handler", compile: culvertHandler},
	},
	merge:  mergeHandler,
	active: func(l *level) bool { return *culvertHandlerSlot.of(l) != nil },
	hooks:  hooks{content: serveByHandler},
}

// handlerRule is a culvert_handler.
type handlerRule struct {
	name    string
	at      *conf.Directive
	handler http.Handler
}

var culvertHandlerSlot = newLocalSlot[*handlerRule]()

// culvertHandler compiles "culvert_handler name".
func culvertHandler(c *compiler, l *level, d *conf.Directive) error {
	h := c.engine.extensions.Handlers[d.Args[0]]
	if h == nil {
		return d.Errorf("unknown handler \"%s\" in \"%s\" directive: the program has registered none of this name", d.Args[0], d.Name)
	}
	*culvertHandlerSlot.edit(l) = &handlerRule{d.Args[0], d, h}
	return nil
}

// mergeHandler has the block of an if or a limit_except inherit the handler of its location, unless it passes requests on.
func mergeHandler(_ *compiler, l *level) error {
	h := *culvertHandlerSlot.of(l)
	switch pass := *passSlot.of(l); {
	case h != nil && pass != nil:
		return h.at.Errorf("\"%s\" and \"%s\" exclude each other in a location", h.at.Name, pass.at.Name)
	case h == nil && pass == nil && l.condition:
		*culvertHandlerSlot.edit(l) = *culvertHandlerSlot.of(l.outer)
	}
	return nil
}

func serveByHandler(x *exchange, w http.ResponseWriter) (status int, done bool) {
	rule := *culvertHandlerSlot.of(x.level)
	typed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &sniffed{ResponseWriter: w}
		rule.handler.ServeHTTP(s, r)
		s.pass(nil)
	})
	r := x.programRequest()
	return x.callProgram("handler \""+rule.name+"\"", typed, w, r, x.startBody(w, r)), true
}
