package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// variablesModule holds the directives that only define variables.
var variablesModule = module{
	directives: []directive{
		{name: "geo", repeatable: true, define: defineGeo},
		{name: "map", repeatable: true, define: defineMap, captures: mapCaptures},
		{name: "split_clients", repeatable: true, define: defineSplit},
	},
}

// declareVariables declares the configuration's variables: all names first, since each may be
// used in the others, above or below.
func (c *compiler) declareVariables(http []*conf.Directive) error {
	if err := c.forAll(http, func(d directive) declareFunc { return d.captures }); err != nil {
		return err
	}
	if err := c.forAll(http, func(d directive) declareFunc { return d.sets }); err != nil {
		return err
	}
	var definitions []func() error
	for _, d := range http {
		define := c.directives[d.Name].define
		if define == nil {
			continue
		}
		name, err := c.definedName(d)
		if err == nil {
			definitions = append(definitions, define(c, d, name))
		} else if err := c.fail(err); err != nil {
			return err
		}
	}
	for _, compile := range definitions {
		if err := c.fail(compile()); err != nil {
			return err
		}
	}
	return nil
}

// declareFunc declares the variables of a directive.
type declareFunc = func(c *compiler, d *conf.Directive) error

// forAll calls a hook for all directives in list and in the blocks inside.
func (c *compiler) forAll(list []*conf.Directive, hook func(directive) declareFunc) error {
	for _, d := range list {
		if declare := hook(c.directives[d.Name]); declare != nil {
			if err := c.fail(declare(c, d)); err != nil {
				return err
			}
		}
		if conf.HasRows(d.Name) {
			continue
		}
		if err := c.forAll(d.Block, hook); err != nil {
			return err
		}
	}
	return nil
}

// definedName returns the name of the variable that d defines, in lower case.
func (c *compiler) definedName(d *conf.Directive) (string, error) {
	last := d.Args[len(d.Args)-1]
	name, ok := strings.CutPrefix(last, "$")
	if !ok || name == "" {
		return "", d.Errorf("invalid variable name \"%s\"", last)
	}
	lower := strings.ToLower(name)
	if c.scope.Builtin(lower) && !vars.Replaceable(lower) {
		return "", d.Errorf("the duplicate \"%s\" variable", name)
	}
	return lower, nil
}

// declareGroups declares the named groups of a regular expression.
func (c *compiler) declareGroups(d *conf.Directive, text string) error {
	re, err := pattern(d, text, false)
	if err != nil {
		return err
	}
	c.engine.backtracks = c.engine.backtracks || re.Backtracks()
	for _, name := range re.Names() {
		if name != "" {
			c.scope.DeclareCapture(name)
		}
	}
	return nil
}
