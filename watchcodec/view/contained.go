package view

import (
	"errors"
	"log/slog"

	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/watchcodec"
)

// contained is a Renderer of which a panic hides what it was called with. The View's goroutines call it.
type contained struct {
	renderer Renderer
	log      *slog.Logger
}

var errPanicked = errors.New("view: the Renderer panicked")

// synced is false where Synced panics.
func (c contained) synced() (synced bool) {
	defer panics.Contain(c.log, "view.Renderer.Synced")
	return c.renderer.Synced()
}

// group reports whether Group has returned.
func (c contained) group(o *watchcodec.Object) (name string, ok bool) {
	defer panics.Contain(c.log, "view.Renderer.Group")
	return c.renderer.Group(o), true
}

func (c contained) render(items []Item, depends func(name string)) (err error) {
	err = errPanicked
	defer panics.Contain(c.log, "view.Renderer.Render")
	return c.renderer.Render(items, depends)
}

// subscribe is Subscribe, which the handler of a request calls, with a cancel that does not panic.
func (c contained) subscribe(changed func(name string)) (cancel func()) {
	unsubscribe := c.renderer.Subscribe(changed)
	if unsubscribe == nil {
		return func() {}
	}
	return func() {
		defer panics.Contain(c.log, "view.Renderer.Subscribe's cancel")
		unsubscribe()
	}
}
