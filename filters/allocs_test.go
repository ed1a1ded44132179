//go:build !race

// The race detector makes a sync.Pool drop objects at random.

package filters_test

import (
	"net/http"
	"testing"
)

// TestAllocationsOfTheHotPath bounds what the filters allocate for a request. The number of allocations is
// exact, which a time is not.
func TestAllocationsOfTheHotPath(t *testing.T) {
	for name, log := range logs() {
		h, r, w := hotPath(t, log), hotRequest(), &bareWriter{http.Header{}}
		if got := testing.AllocsPerRun(100, func() {
			clear(w.h)
			h.ServeHTTP(w, r)
		}); got > 4 {
			t.Errorf("%s: %v allocations, want at most 4", name, got)
		}
	}
}
