package e2e

import "testing"

// fact compares what a peer does with what it was seen to do when its test was written, and logs a difference: a peer that
// has changed is no fault of culvert's.
func fact[V comparable](t *testing.T, what string, got, known V) {
	t.Helper()
	if got != known {
		t.Logf("a peer has changed: %s: %v; it was %v", what, got, known)
	}
}
