package upstream

import (
	"context"
	"time"

	"github.com/culvert-go/culvert/internal/panics"
)

// Source delivers the targets of a group until the group is closed. DNS and SRV return
// implementations.
type Source interface {
	// Watch calls set with the first list of targets and with each new one, and
	// returns when ctx ends. A list may be empty: requests are refused (503) until there is another one. set returns an
	// error if the list is invalid; the group keeps the previous list then.
	//
	// If Watch returns before ctx ends, the group keeps its targets; a group that has none
	// refuses requests (503). If Watch panics, or DNSOptions.OnError does, the panic is
	// logged with slog.Default(), and Watch is called again a second later.
	Watch(ctx context.Context, set func(...Target) error)
}

// watchRetryDelay is the time until a Source that has panicked is called again.
const watchRetryDelay = time.Second

// runSource runs the source until it returns.
func (g *Group) runSource() {
	defer g.first.giveUp(errSourceEnded)
	for !g.watchSource() {
		select {
		case <-time.After(watchRetryDelay):
		case <-g.ctx.Done():
			return
		}
	}
}

// watchSource calls the source, and reports whether it has returned without a panic.
func (g *Group) watchSource() (returned bool) {
	defer panics.Contain(nil, "upstream.Source.Watch")
	g.o.Source.Watch(g.ctx, g.Set)
	return true
}
