package view

import "github.com/culvert-go/culvert/watchcodec"

// Item is an object to be rendered.
type Item struct {
	// Object is the object. Render may edit it, except for its name and namespace, and must not
	// keep it.
	Object *watchcodec.Object
	// Hidden hides the object from clients.
	Hidden bool
}

// Renderer renders objects for clients. The result may depend on any state whose changes are
// reported through Subscribe. Its methods are called by several goroutines at the same time.
//
// A panic on a goroutine of a View, which would end the program, is logged to Options.Log: Synced
// then counts as false, Group hides the object, and Render counts as failed.
type Renderer interface {
	// Synced reports whether all state that rendering depends on is known. Until then clients get a
	// 429 and have to retry.
	Synced() bool
	// Group returns the name of o's group. The objects of a group are rendered together since they
	// depend on each other, as the slices of a service do. "" means that o is rendered alone. The
	// name must depend on o's bytes only.
	Group(o *watchcodec.Object) string
	// Render edits or hides the objects of a group. Before it reads any other state it calls
	// depends with a name for that state; a change under that name causes the group to be rendered
	// again. After an error all objects of the group are hidden.
	Render(items []Item, depends func(name string)) error
	// Subscribe registers changed until cancel is called. changed has to be called with the name
	// after state that Render depends on has changed, and after Synced has become true. changed
	// does not call the Renderer. Subscribe may take its time, in which only the requests for its own
	// View wait; it must not call Views.Close. cancel may be nil.
	Subscribe(changed func(name string)) (cancel func())
}
