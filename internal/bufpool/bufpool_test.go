package bufpool_test

import (
	"testing"

	"github.com/culvert-go/culvert/internal/bufpool"
)

// TestPutNil: Put ignores nil, with Poison and without.
func TestPutNil(t *testing.T) {
	defer func(before bool) { bufpool.Poison = before }(bufpool.Poison)
	for _, bufpool.Poison = range []bool{false, true} {
		bufpool.Put(nil)
		bufpool.Put(bufpool.Get())
		bufpool.Put(bufpool.GetFor(-1))
	}
}
