package engine

import (
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// earlyHintsModule decides which clients receive an upstream's 103.
var earlyHintsModule = module{
	directives: []directive{{name: "early_hints", repeatable: true, compile: earlyHints}},
}

// earlyHintsSlot holds the conditions, one of which must be met. Without any no client receives a 103: old ones take it for
// the final response.
var earlyHintsSlot = newSlot([]vars.Value(nil))

// earlyHints compiles "early_hints string ...".
func earlyHints(c *compiler, l *level, d *conf.Directive) error {
	conditions := earlyHintsSlot.edit(l)
	if l.first(d.Name) {
		*conditions = nil
	}
	for _, arg := range d.Args {
		v, err := c.value(d, arg)
		if err != nil {
			return err
		}
		*conditions = append(*conditions, v)
	}
	return nil
}

// earlyHints reports whether the client receives early hints.
func (x *exchange) earlyHints() bool {
	return slices.ContainsFunc(*earlyHintsSlot.of(x.level), func(v vars.Value) bool {
		s := v.String(&x.Request)
		return s != "" && s != "0"
	})
}
