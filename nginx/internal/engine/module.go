package engine

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

//go:generate go run ../table ../../README.md

// module is a family of directives: what they are in a configuration, and what they do to a
// request. A hook that is nil is not called. The settings of a module are in a slot of each level.
type module struct {
	directives []directive
	variables  map[string]variable // by name

	// merge is called for each level when its own directives are compiled.
	merge func(c *compiler, l *level) error
	// blocks compiles the blocks among the directives of a level, which inherit its settings. It is
	// called when all modules have merged theirs.
	blocks func(c *compiler, l *level, list []*conf.Directive) error

	// active reports whether the module does anything for the requests of a level, whose settings
	// are merged. Where it does not, its hooks are not called. nil is everywhere.
	active func(l *level) bool
	hooks
}

// hooks are what a module does in the phases of a request, in the order of the phases. Within a
// phase, modules are called in the order of the list.
type hooks struct {
	// postRead is called once, when the server is known and nothing else of the request has been
	// examined. A status other than 0 ends the request with an error page.
	postRead func(x *exchange) int
	// located is called whenever a location has been found. The status is like that of postRead.
	located func(x *exchange, w http.ResponseWriter) int
	// rewrite is called for the server, and then for each location. changed reports whether the
	// location must be found anew; done, whether the status is like that of postRead.
	rewrite func(x *exchange, w http.ResponseWriter) (status int, changed, done bool)
	// preaccess is called when the location is certain. The status is like that of postRead.
	preaccess func(x *exchange) int
	// access reports whether the request is allowed; the status is that of a refusal. It is not
	// called for subrequests.
	access func(x *exchange, w http.ResponseWriter) (verdict, int)
	// precontent serves the request, or leaves that to the next module if done is false, as content
	// does. It is called outside of the filters of around.
	precontent func(x *exchange, w http.ResponseWriter) (status int, done bool)
	// around returns a filter of the request around the handlers of content; nil for none.
	around func(x *exchange) culvert.Filter
	// content serves the request, or leaves that to the next module if done is false. The status
	// is 0 if a response has been sent, else that of an error page.
	content func(x *exchange, w http.ResponseWriter) (status int, done bool)
	// header changes the final header of the response to the client.
	header func(x *exchange, h http.Header)
	// body returns a filter of the content of any response, error pages too; nil for none.
	body func(x *exchange) culvert.Filter
	// write returns the writer through which the body is sent to the client, over w; nil is w
	// itself. At most one module has it.
	write func(x *exchange, w io.Writer) io.WriteCloser
	// log is called when the response is complete or has failed.
	log func(x *exchange)
}

// directive is one directive of a module. Its contexts and its number of arguments are those that
// nginx's own tables have, which conf checks.
type directive struct {
	name       string
	repeatable bool // a block may contain it more than once
	// captures declares the named groups of the regular expressions in the directive as variables,
	// and sets the variable that it sets, on any level. Both are called before all that follow.
	captures, sets func(c *compiler, d *conf.Directive) error
	// define declares the variable that a directive of http defines, which is its last argument,
	// and returns a function that compiles the definition when all variables are declared.
	define func(c *compiler, d *conf.Directive, name string) (compile func() error)
	// declare compiles a directive of http that others may use above it. It is called before any
	// other is compiled.
	declare compileFunc
	// compile compiles the directive into the level that it stands on. It is nil if declare does
	// that, or blocks.
	compile compileFunc
	// upstream compiles the directive inside upstream.
	upstream func(c *compiler, g *group, d *conf.Directive) error
	// notFollowed returns the reason why something of the directive is accepted but not followed,
	// "" if there is nothing; nil means that there never is.
	notFollowed func(d *conf.Directive) string
}

// variable returns the value of a variable, and whether it has one.
type variable func(x *exchange) (string, bool)

// nonEmpty returns a variable that has no value instead of an empty one.
func nonEmpty(get func(*exchange) string) variable {
	return func(x *exchange) (string, bool) {
		s := get(x)
		return s, s != ""
	}
}

// known returns a variable that always has a value.
func known(get func(*exchange) string) variable {
	return func(x *exchange) (string, bool) { return get(x), true }
}

// newScope returns a Scope with the variables of the modules.
func newScope(list []*module) *vars.Scope {
	all := map[string]vars.Getter{}
	for _, m := range list {
		for name, get := range m.variables {
			all[name] = func(r *vars.Request) (string, bool) { return get(r.Owner.(*exchange)) }
		}
	}
	return vars.NewScope(all)
}

// compileFunc compiles one directive into the level that it stands on.
type compileFunc func(c *compiler, l *level, d *conf.Directive) error

// Directives returns the directives that the engine implements.
func Directives() conf.Specs {
	all := conf.Specs{}
	for _, m := range modules() {
		for _, d := range m.directives {
			all[d.name] = conf.Spec{Repeatable: d.repeatable, NotFollowed: d.notFollowed}
		}
	}
	for _, m := range streamModules() {
		for _, d := range m.directives {
			spec, also := all[d.name]
			spec.StreamOnly = spec.StreamOnly || !also
			spec.Stream = &conf.Spec{Repeatable: d.repeatable, NotFollowed: d.notFollowed}
			all[d.name] = spec
		}
	}
	return all
}
