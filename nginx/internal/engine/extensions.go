package engine

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// Extensions are what a program adds to the directives and variables of http.
type Extensions struct {
	// Handlers are those of culvert_handler, by name.
	Handlers map[string]http.Handler
	// Directives are directives of the program's own. The first is the outermost where several apply.
	Directives []Directive
	// Variables are variables of the program's own, by their names in lower case. One with a nil function has the value that
	// SetVariable has set.
	Variables map[string]func(*http.Request) (value string, found bool)
}

// Directive is a directive of a program's own.
type Directive struct {
	// Name is its name.
	Name string
	// Syntax is where it may stand, and with how many arguments.
	Syntax conf.Syntax
	// Repeatable reports whether a block may contain it more than once.
	Repeatable bool
	// Middleware is called for each block with the directive, and returns the middleware of what the block and those inside,
	// which have none of the directive themselves, apply to; nil for none.
	Middleware func(list []Occurrence) (culvert.Filter, error)
}

// Occurrence is a directive in a configuration.
type Occurrence struct {
	*conf.Directive
	compiler *compiler
}

// Template compiles an argument, which may have variables, and returns a function that evaluates it. It is called during
// Middleware alone.
func (o Occurrence) Template(arg int) (func(*http.Request) string, error) {
	v, err := o.compiler.value(o.Directive, o.Args[arg])
	return func(r *http.Request) string {
		x := exchangeOf(r.Context())
		if x == nil {
			return ""
		}
		return v.String(&x.Request)
	}, err
}

var (
	directiveName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)
	variableName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// check returns an error if e contradicts itself, or nginx.
func (e *Extensions) check() error {
	for _, name := range slices.Sorted(maps.Keys(e.Handlers)) {
		if e.Handlers[name] == nil {
			return fmt.Errorf("nginx: handler %q is nil", name)
		}
	}
	if err := e.checkDirectives(); err != nil {
		return err
	}
	return e.checkVariables()
}

func (e *Extensions) checkDirectives() error {
	seen := map[string]bool{}
	for _, d := range e.Directives {
		switch {
		case !directiveName.MatchString(d.Name):
			return fmt.Errorf("nginx: directive %q: the name must consist of letters, digits and underscores, and begin with a letter", d.Name)
		case conf.Known(d.Name):
			return fmt.Errorf("nginx: directive %q is one of nginx's or culvert's own", d.Name)
		case seen[d.Name]:
			return fmt.Errorf("nginx: directive %q is there twice", d.Name)
		case d.Syntax.Contexts&^conf.InAny != 0:
			return fmt.Errorf("nginx: directive %q: unknown context", d.Name)
		case d.Middleware == nil:
			return fmt.Errorf("nginx: directive %q: Middleware is nil", d.Name)
		}
		seen[d.Name] = true
	}
	return nil
}

func (e *Extensions) checkVariables() error {
	nginx := newScope(modules())
	for _, name := range slices.Sorted(maps.Keys(e.Variables)) {
		switch {
		case !variableName.MatchString(name):
			return fmt.Errorf("nginx: variable %q: the name must consist of lower-case letters, digits and underscores, and begin with a letter", name)
		case nginx.Find(name) != nil:
			return fmt.Errorf("nginx: variable %q is one of nginx's own", name)
		}
	}
	return nil
}

// specs returns the directives that the engine implements, and those of the program.
func (e *Extensions) specs() conf.Specs {
	all := Directives()
	for _, d := range e.Directives {
		all[d.Name] = conf.Spec{Repeatable: d.Repeatable, Syntax: &d.Syntax}
	}
	return all
}

// module returns the module of the program's directives and variables.
func (e *Extensions) module() *module {
	m := &module{variables: map[string]variable{}, merge: e.makeMiddleware}
	for i, d := range e.Directives {
		m.directives = append(m.directives, directive{name: d.Name, repeatable: d.Repeatable, compile: occurrence(i)})
	}
	for name, get := range e.Variables {
		if get != nil {
			m.variables[name] = programVariable(name, get)
		}
	}
	return m
}

// declare declares the variables that SetVariable sets.
func (e *Extensions) declare(scope *vars.Scope) {
	for name, get := range e.Variables {
		if get == nil {
			scope.DeclareSet(name, false)
		}
	}
}

// programVariable returns a variable whose value is a function's, and which has none if that panics.
func programVariable(name string, get func(*http.Request) (string, bool)) variable {
	return func(x *exchange) (value string, found bool) {
		defer func() {
			if v := recover(); v != nil {
				x.logPanic("the function of variable \"$"+name+"\"", v)
				value, found = "", false
			}
		}()
		return get(x.programRequest())
	}
}

// Variable returns the value of a variable for a request that an Engine serves, and whether there is one.
func Variable(r *http.Request, name string) (value string, found bool) {
	x := exchangeOf(r.Context())
	if x == nil {
		return "", false
	}
	get := x.engine.scope.Find(name)
	if get == nil {
		return "", false
	}
	return get(&x.Request)
}

// SetVariable sets a variable of a request that an Engine serves: one of Extensions without a function, or one that the
// configuration sets.
func SetVariable(r *http.Request, name, value string) error {
	x := exchangeOf(r.Context())
	if x == nil {
		return fmt.Errorf("nginx: variable %q is set for a request that no configuration serves", name)
	}
	name = strings.ToLower(name)
	if !x.engine.scope.Settable(name) {
		return fmt.Errorf("nginx: variable %q can't be set: it is none without a function, and the configuration has no \"set\" for it", name)
	}
	x.SetVariable(name, value)
	return nil
}
