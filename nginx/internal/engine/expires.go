package engine

import (
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// expiresModule sets Expires and Cache-Control.
var expiresModule = module{
	directives: []directive{
		{name: "expires", compile: expires},
	},
	active: func(l *level) bool { return expiresSlot.of(l).fixed != nil || expiresSlot.of(l).variable != nil },
	hooks:  hooks{header: setExpires},
}

var expiresSlot = newSlot(expiresRule{})

// expiresRule is an expires: fixed, or evaluated for each response if its time has variables.
type expiresRule struct {
	fixed    *cachectl.Expires
	variable *vars.Value
	modified bool
}

// expires compiles "expires [modified] time|epoch|max|off".
func expires(c *compiler, l *level, d *conf.Directive) error {
	rule := expiresSlot.edit(l)
	*rule = expiresRule{modified: len(d.Args) == 2}
	if len(d.Args) == 2 && d.Args[0] != "modified" {
		return d.Invalid()
	}
	last := d.Args[len(d.Args)-1]
	if at, ok := conf.Duration(strings.TrimPrefix(last, "@")); ok && last[0] == '@' && at >= 24*time.Hour {
		return d.Errorf("\"expires\" directive daily time value must be less than 24 hours")
	}
	if strings.Contains(last, "$") {
		v, err := c.value(d, last)
		rule.variable = &v
		return err
	}
	e, err := cachectl.ParseExpires(d.Args...)
	if err != nil {
		return d.Invalid()
	}
	rule.fixed = &e
	return nil
}

// setExpires sets Expires and Cache-Control in a final header.
func setExpires(x *exchange, h http.Header) {
	if !cachectl.AddHeaderStatus(x.Status) {
		return
	}
	rule := expiresSlot.of(x.level)
	if rule.fixed != nil {
		rule.fixed.Apply(h, time.Now())
		return
	}
	if rule.variable == nil {
		return
	}
	args := []string{rule.variable.String(&x.Request)}
	if rule.modified {
		args = []string{"modified", args[0]}
	}
	if e, err := cachectl.ParseExpires(args...); err == nil { // anything else is "off"
		e.Apply(h, time.Now())
	}
}
