package engine

import "testing"

// A level shares the settings around it until a directive of its own changes them, and has none
// of those that are local.
func TestSlotsAreInherited(t *testing.T) {
	http := newLevel().child(nil)
	expiresSlot.edit(http).modified = true
	*stubStatusSlot.edit(http) = true
	inner := http.child(nil)
	if expiresSlot.of(inner) != expiresSlot.of(http) || expiresSlot.own(inner) {
		t.Error("the settings are not shared")
	}
	if *stubStatusSlot.of(inner) {
		t.Error("a local setting is inherited")
	}
	expiresSlot.edit(inner).modified = false
	if !expiresSlot.own(inner) || !expiresSlot.of(http).modified {
		t.Error("the inner level's directive has changed the outer level")
	}
	if expiresSlot.of(newLevel()).modified {
		t.Error("a directive has changed the defaults")
	}
}
