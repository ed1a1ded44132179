package upstream

import (
	"context"
	"time"

	"github.com/culvert-go/culvert/internal/panics"
)

// Source delivers the targets of a group while it lives.
type Source interface {
	// Watch calls set with each new list of targets, the first one included, and
	// returns when ctx ends. One that returns before leaves the group what it has, and a group without a list then refuses
	// requests (503). An error of set says what is wrong with the list;
	// the group keeps the one before then. A Watch that panics, or whose DNSOptions.OnError does, is logged
	// with slog.Default(), and called again a second later.
	Watch(ctx context.Context, set func(...Target) error)
}

// watchAgain is how long a Source that has panicked is left alone.
const watchAgain = time.Second

// follow runs the source until it returns.
func (g *Group) follow() {
	defer g.first.giveUp(errSourceEnded)
	for !g.watchSource() {
		select {
		case <-time.After(watchAgain):
		case <-g.ctx.Done():
			return
		}
	}
}

// watchSource reports whether the source has returned, and not panicked.
func (g *Group) watchSource() (returned bool) {
	defer panics.Contain(nil, "upstream.Source.Watch")
	g.o.Source.Watch(g.ctx, g.Set)
	return true
}
