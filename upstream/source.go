package upstream

import (
	"context"
)

// Source delivers the targets of a group while it lives.
type Source interface {
	// Watch calls set with each new list of targets, the first one included, and
	// returns when ctx ends. An error of set says what is wrong with the list;
	// the group keeps the one before then.
	Watch(ctx context.Context, set func(...Target) error)
}

// follow runs the source.
func (g *Group) follow() { g.o.Source.Watch(g.ctx, g.Set) }
