package engine

import (
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// level is the compiled form of the directives of http, a server or a location, including what it
// inherits from the levels around it. A request runs under one level at a time; an internal
// redirect may change it.
type level struct {
	at        *conf.Directive // the block; nil on the main level
	outer     *level          // nil on the main level
	server    *server         // nil on http's level
	kind      locationKind
	name      string                   // the location's name: its prefix or regular expression
	condition bool                     // the block of an if or a limit_except, inside the location of this name
	locations *route.Locations[*level] // inside; nil if there can be none
	phases    *phases                  // of its requests
	settings  []settings               // by the index of the modules' slots
	set       map[string]bool          // the families of directives that are set on this level itself
}

// newLevel returns the main level, with nginx's defaults.
func newLevel() *level {
	l := &level{settings: make([]settings, len(slotTypes))}
	for i, t := range slotTypes {
		l.settings[i].value = t.defaults
	}
	return l
}

// child returns the level of a block inside l, before any directive of its own.
func (l *level) child(at *conf.Directive) *level {
	c := &level{at: at, outer: l, server: l.server, settings: make([]settings, len(slotTypes))}
	for i, t := range slotTypes {
		c.settings[i].value = t.defaults
		if t.inherited {
			c.settings[i].value = l.settings[i].value
		}
	}
	return c
}

// inside returns the level of a block inside a location that is not a location itself.
func (l *level) inside(at *conf.Directive) *level {
	c := l.child(at)
	c.kind, c.name, c.condition = l.kind, l.name, true
	return c
}

// first reports whether the family has not been set on this level itself before. The caller drops
// inherited values then, as nginx does for every directive that may be repeated.
func (l *level) first(family string) bool {
	if l.set[family] {
		return false
	}
	if l.set == nil {
		l.set = map[string]bool{}
	}
	l.set[family] = true
	return true
}
