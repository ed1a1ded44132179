package view

import "github.com/culvert-go/culvert/watchcodec"

// Item is an object that is to be rendered.
type Item struct {
	// Object may be edited, but for its name and namespace. It must not be kept.
	Object *watchcodec.Object
	// Hidden hides it.
	Hidden bool
}

// Renderer makes of objects what clients see. It may depend on anything that Subscribe
// tells the changes of. It is called by several goroutines at the same time.
//
// A panic on a goroutine of a View's own, where it would end the program, is logged to Options.Log: one of Synced is false, one
// of Group hides the object, and one of Render is an error of it.
type Renderer interface {
	// Synced says whether all that rendering depends on is known. Until then clients are
	// told to come again (429).
	Synced() bool
	// Group names the objects that are rendered together with o, since they depend on
	// each other, as the slices of a service do: those for which it returns the same. ""
	// stands for o alone. It must depend on o's bytes only.
	Group(o *watchcodec.Object) string
	// Render edits or hides the objects of a group. Before it looks at anything else it
	// calls depends with a name for that; a change under that name has the group rendered
	// again. After an error all objects of the group are hidden.
	Render(items []Item, depends func(name string)) error
	// Subscribe has changed called after what Render depends on has changed, with the
	// name, and after Synced has become true, until cancel is called. changed does not
	// call back. A nil cancel is none to call.
	Subscribe(changed func(name string)) (cancel func())
}
