package engine

import (
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// expiresRule is an expires: fixed, or evaluated for each response if its time has variables.
type expiresRule struct {
	fixed    *cachectl.Expires
	variable *vars.Value
	modified bool
}

// expires compiles "expires [modified] time|epoch|max|off".
func expires(c *compiler, l *level, d *conf.Directive) error {
	l.expires = expiresRule{modified: len(d.Args) == 2}
	if len(d.Args) == 2 && d.Args[0] != "modified" {
		return d.Invalid()
	}
	last := d.Args[len(d.Args)-1]
	if at, ok := conf.Duration(strings.TrimPrefix(last, "@")); ok && last[0] == '@' && at >= 24*time.Hour {
		return d.Errorf("\"expires\" directive daily time value must be less than 24 hours")
	}
	if strings.Contains(last, "$") {
		v, err := c.value(d, last)
		l.expires.variable = &v
		return err
	}
	e, err := cachectl.ParseExpires(d.Args...)
	if err != nil {
		return d.Invalid()
	}
	l.expires.fixed = &e
	return nil
}

// applyExpires sets Expires and Cache-Control in a final header.
func (l *level) applyExpires(x *exchange, h http.Header) {
	if !cachectl.AddHeaderStatus(x.Status) {
		return
	}
	if l.expires.fixed != nil {
		l.expires.fixed.Apply(h, time.Now())
		return
	}
	if l.expires.variable == nil {
		return
	}
	args := []string{l.expires.variable.String(&x.Request)}
	if l.expires.modified {
		args = []string{"modified", args[0]}
	}
	if e, err := cachectl.ParseExpires(args...); err == nil { // anything else is "off"
		e.Apply(h, time.Now())
	}
}
