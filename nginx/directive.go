package nginx

import (
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// Directive is a directive of the program's own: a middleware whose settings are in the configuration. It has no block. A block
// inherits it from the block around, unless the block has the directive itself, as with nginx's directives.
type Directive struct {
	// Name is the directive's name: letters, digits and underscores.
	Name string
	// Syntax is where the directive may stand, and with how many arguments. The zero Syntax is http, server and location,
	// and no arguments.
	conf.Syntax
	// Repeatable reports whether a block may contain the directive more than once.
	Repeatable bool
	// Middleware returns the middleware for the requests of a block; nil for none, as for a value "off". It must not be nil
	// itself.
	//
	// It is called by New, Check and Reload, once for each block that has the directive, with the directives of this name in
	// that block, at least one, in their order. Blocks that inherit the directive share the middleware, which is called
	// concurrently. An error is one of the configuration, at the place of the first of them unless it is a *conf.Error, as
	// Errorf of an Occurrence returns. Requests that a Reload finds running complete in the former middleware.
	//
	// The middleware runs when rewrites, limits and access control have let a request pass, around all that serves it:
	// try_files, proxy_pass, files, and error pages for what fails there. It does not see what nginx decides before: a
	// return, a redirect, a refusal. The configuration's filters, such as gzip, are outside of it. It runs for subrequests
	// (ssi, auth_request), too. If an index or an error page leads the request to another location with the same
	// middleware, it does not run again.
	//
	// The request is like that of a handler (Options.Handlers). The one that the middleware passes on replaces it: header,
	// body, method and context. A changed path or query in URL is a rewrite inside the location; a path with ".." is
	// refused with 400. The context must be that of the request which the middleware was called with, or made of it.
	//
	// next may be called on another goroutine, but not while the middleware writes by itself, as http.TimeoutHandler does:
	// the two would use the request at once. The request does not end before next has, and a call behind the middleware's
	// return does nothing. A panic is treated like a handler's.
	Middleware func(list []Occurrence) (culvert.Filter, error)
}

// Occurrence is a Directive in a configuration, with its arguments and its place.
type Occurrence struct {
	*conf.Directive
	template func(arg int) (func(*http.Request) string, error)
}

// Template compiles an argument that may contain variables, and returns a function that evaluates it for a request of the
// middleware. The error, for an unknown variable for instance, is nginx's, with the place. Template is called during
// Middleware alone, and the function on the request's goroutine. Template panics if there is no such argument.
func (o Occurrence) Template(arg int) (func(r *http.Request) string, error) { return o.template(arg) }

// engineDirectives converts Options.Directives.
func engineDirectives(list []Directive) []engine.Directive {
	var converted []engine.Directive
	for _, d := range list {
		e := engine.Directive{Name: d.Name, Syntax: d.Syntax, Repeatable: d.Repeatable}
		if d.Middleware != nil {
			e.Middleware = func(found []engine.Occurrence) (culvert.Filter, error) {
				var list []Occurrence
				for _, o := range found {
					list = append(list, Occurrence{o.Directive, o.Template})
				}
				return d.Middleware(list)
			}
		}
		converted = append(converted, e)
	}
	return converted
}

// Variable returns the value of a variable for a request of a Server, and reports whether it has one. name is that of a variable
// of nginx, of the configuration or of Options.Variables, without the dollar sign; a capture has one only if its group has a
// name. r is a request that a handler, a middleware or the function of a variable was called with, or one with its context;
// another request has no variables. Variable is called on the request's goroutine, before the handler has returned.
func Variable(r *http.Request, name string) (value string, found bool) {
	return engine.Variable(r, name)
}

// SetVariable sets a variable for a request of a Server, r being as for Variable: one of Options.Variables whose function is nil,
// or one that the configuration has a "set" for. The configuration uses the value from then on: in header fields, for upstreams,
// in logs. The error says that r is no such request, or name no such variable. SetVariable is called on the request's goroutine,
// before the handler has returned.
func SetVariable(r *http.Request, name, value string) error {
	return engine.SetVariable(r, name, value)
}
