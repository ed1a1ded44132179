package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// set compiles "set $variable value".
func set(c *compiler, l *level, d *conf.Directive) error {
	name, _ := setName(d)
	value, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	addStep(l, func(x *exchange, _ *scriptRun) {
		if text := value.String(&x.Request); !x.Failed() { // else an error page would have what is not known to be right
			assign(x, name, text)
		}
	})
	return nil
}

// settable are nginx's own variables that can be set.
var settable = map[string]func(x *exchange, value string){
	"args":         setArgs,
	"query_string": setArgs,
	"limit_rate":   setLimitRate,
}

func setArgs(x *exchange, value string) { x.Args, x.uriChanged = value, true }

// assign sets a variable.
func assign(x *exchange, name, value string) {
	if set, ok := settable[name]; ok {
		set(x, value)
		return
	}
	x.SetVariable(name, value)
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
	case settable[name] != nil:
		return nil
	case !c.scope.DeclareSet(name, d.Name == "set"):
		return d.Errorf("the duplicate \"%s\" variable", name)
	}
	return nil
}
