package engine

// slot is the place of a module's settings, a T, among those of a level.
type slot[T any] struct{ index int }

// slotTypes describe all slots, by index.
var slotTypes []slotType

type slotType struct {
	defaults  any // a *T, which is not changed
	inherited bool
}

// newSlot returns a slot for settings that a level inherits from the level around it. It must be
// called before the first level is made: for a variable of the package.
func newSlot[T any](defaults T) slot[T] { return addSlot(defaults, true) }

// newLocalSlot returns a slot for settings that a level does not inherit.
func newLocalSlot[T any]() slot[T] { return addSlot(*new(T), false) }

func addSlot[T any](defaults T, inherited bool) slot[T] {
	slotTypes = append(slotTypes, slotType{&defaults, inherited})
	return slot[T]{len(slotTypes) - 1}
}

// settings are what is in one slot of a level.
type settings struct {
	value any  // a *T
	own   bool // it belongs to this level alone; else it is shared with the one that it was inherited from
}

// of returns a level's settings, which must not be changed.
func (s slot[T]) of(l *level) *T { return l.settings[s.index].value.(*T) }

// edit returns the settings for a directive of this level to change: at first they are a copy of
// those that are inherited. What they point to is still shared.
func (s slot[T]) edit(l *level) *T {
	at := &l.settings[s.index]
	if !at.own {
		mine := *at.value.(*T)
		*at = settings{&mine, true}
	}
	return at.value.(*T)
}

// own reports whether a directive of this level itself has changed the settings.
func (s slot[T]) own(l *level) bool { return l.settings[s.index].own }
