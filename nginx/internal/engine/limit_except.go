package engine

import (
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
)

// exceptRule is a limit_except: the level that applies to other methods.
type exceptRule struct {
	methods []string
	level   *level
	at      *conf.Directive
}

// methods are those that limit_except accepts.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "OPTIONS", "PROPFIND", "PROPPATCH", "LOCK", "UNLOCK", "PATCH"}

// limitExcept compiles "limit_except method ... { … }". The block is compiled with the location:
// see finishExcept. GET includes HEAD.
func limitExcept(_ *compiler, l *level, d *conf.Directive) error {
	rule := &exceptRule{at: d}
	for _, name := range d.Args {
		if !slices.Contains(methods, name) {
			return d.Errorf("invalid method \"%s\"", name)
		}
		rule.methods = append(rule.methods, name)
		if name == "GET" {
			rule.methods = append(rule.methods, "HEAD")
		}
	}
	l.except = rule
	return nil
}

// finishExcept compiles the block of a limit_except. As in nginx, it inherits the location's
// upstream and nothing of its script.
func (c *compiler) finishExcept(l *level) error {
	rule := l.except
	if rule == nil {
		return nil
	}
	inner := l.inside()
	rule.level = inner
	return c.finishInside(l, inner, rule.at)
}

// exceptFor returns the level that applies to the request's method.
func (l *level) exceptFor(method string) *level {
	if l.except == nil || slices.Contains(l.except.methods, method) {
		return l
	}
	return l.except.level
}
