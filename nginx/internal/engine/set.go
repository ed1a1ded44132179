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
	l.script = append(l.script, func(x *exchange, _ *scriptRun) { x.assign(name, value.String(&x.Request)) })
	return nil
}

// assign sets a variable.
func (x *exchange) assign(name, value string) {
	switch name {
	case "args", "query_string":
		x.Args, x.uriChanged = value, true
	case "limit_rate":
		x.setLimitRate(value)
	default:
		x.SetVariable(name, value)
	}
}

func setName(d *conf.Directive) (name string, ok bool) {
	name, ok = strings.CutPrefix(d.Args[0], "$")
	return strings.ToLower(name), ok && name != ""
}

// declareSets declares each variable that is set anywhere.
func (c *compiler) declareSets(list []*conf.Directive) error {
	for _, d := range list {
		if d.Name != "set" && d.Name != "auth_request_set" {
			if !conf.HasRows(d.Name) {
				if err := c.declareSets(d.Block); err != nil {
					return err
				}
			}
			continue
		}
		name, ok := setName(d)
		if !ok {
			return d.Errorf("invalid variable name \"%s\"", d.Args[0])
		}
		if name == "args" || name == "query_string" || name == "limit_rate" {
			continue
		}
		if !c.scope.DeclareSet(name, d.Name == "set") {
			return d.Errorf("the duplicate \"%s\" variable", name)
		}
	}
	return nil
}
