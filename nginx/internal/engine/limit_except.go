package engine

import (
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
)

var exceptSlot = newLocalSlot[*exceptRule]()

// exceptRule is a limit_except: the level that applies to other methods.
type exceptRule struct {
	methods []string
	level   *level
	at      *conf.Directive
}

// methods are those that limit_except accepts.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "OPTIONS", "PROPFIND", "PROPPATCH", "LOCK", "UNLOCK", "PATCH"}

// limitExcept compiles "limit_except method ... { … }". The block is compiled with the location:
// see compileExcept. GET includes HEAD.
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
	*exceptSlot.edit(l) = rule
	return nil
}

// compileExcept compiles the block of a limit_except. As in nginx, it inherits the location's
// upstream and nothing of its script.
func compileExcept(c *compiler, l *level) error {
	rule := *exceptSlot.of(l)
	if rule == nil {
		return nil
	}
	rule.level = l.inside(rule.at)
	return c.block(rule.level, rule.at.Block)
}

// exceptFor returns the level that applies to the request's method.
func exceptFor(l *level, method string) *level {
	rule := *exceptSlot.of(l)
	if rule == nil || slices.Contains(rule.methods, method) {
		return l
	}
	return rule.level
}
