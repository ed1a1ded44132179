//go:build !race

// The race detector makes a sync.Pool drop objects at random.

package server

import (
	"net/http"
	"testing"
)

// An exchange of a small GET allocates the request with its fields and the response's, and nothing else.
func TestAllocations(t *testing.T) {
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(okBody)
	}))
	p := dialRaw(t, addr)
	if allocs := testing.AllocsPerRun(200, func() { p.get(t) }); allocs > 5 {
		t.Errorf("%v allocations", allocs)
	}
}
