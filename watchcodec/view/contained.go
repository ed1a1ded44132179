package view

import (
	"errors"
	"log/slog"

	"github.com/culvert-go/culvert/internal/panics"
	"github.com/culvert-go/culvert/watchcodec"
)

// contained wraps a Renderer for the View's goroutines: it logs a panic, and the object that caused
// it is hidden.
type contained struct {
	renderer Renderer
	log      *slog.Logger
}

var errPanicked = errors.New("view: the Renderer panicked")

// synced is false if Synced panics.
func (c contained) synced() (synced bool) {
	defer panics.Contain(c.log, "view.Renderer.Synced")
	return c.renderer.Synced()
}

// group returns the result of Group. ok is false if Group has panicked.
func (c contained) group(o *watchcodec.Object) (name string, ok bool) {
	defer panics.Contain(c.log, "view.Renderer.Group")
	return c.renderer.Group(o), true
}

func (c contained) render(items []Item, depends func(name string)) (err error) {
	err = errPanicked
	defer panics.Contain(c.log, "view.Renderer.Render")
	return c.renderer.Render(items, depends)
}

// subscribe calls Subscribe, on the goroutine of a request, and returns a cancel that does not
// panic.
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
