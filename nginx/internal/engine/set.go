package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// set compiles "set $variable value". Of nginx's own variables $args and $limit_rate can be set.
func set(c *compiler, l *level, d *conf.Directive) error {
	name, _ := setName(d)
	value, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	addStep(l, func(x *exchange, _ *scriptRun) { x.assign(name, value.String(&x.Request)) })
	return nil
}

// assign sets a variable.
func (x *exchange) assign(name, value string) {
	switch name {
	case "args", "query_string":
		x.Args, x.uriChanged = value, true
	case "limit_rate":
		setLimitRate(x, value)
	default:
		x.SetVariable(name, value)
	}
}

func setName(d *conf.Directive) (name string, ok bool) {
	name, ok = strings.CutPrefix(d.Args[0], "$")
	return strings.ToLower(name), ok && name != ""
}

// declareSet declares the variable that set or auth_request_set sets.
func declareSet(c *compiler, d *conf.Directive) error {
	name, ok := setName(d)
	switch {
	case !ok:
		return d.Errorf("invalid variable name \"%s\"", d.Args[0])
	case name == "args", name == "query_string", name == "limit_rate":
		return nil
	case !c.scope.DeclareSet(name, d.Name == "set"):
		return d.Errorf("the duplicate \"%s\" variable", name)
	}
	return nil
}
