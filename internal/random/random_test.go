package random

import (
	"slices"
	"testing"
)

// TestSeed draws the same numbers twice, and others from another seed.
func TestSeed(t *testing.T) {
	draw := func(seed uint64) (list []int64) {
		defer Seed(seed)()
		for range 20 {
			list = append(list, int64(IntN(1000)), Int64N(1<<40), int64(Float64()*1e9))
		}
		return list
	}
	if a, b := draw(1), draw(1); !slices.Equal(a, b) {
		t.Errorf("one seed gives %v, and %v", a, b)
	}
	if a, b := draw(1), draw(2); slices.Equal(a, b) {
		t.Errorf("two seeds give %v", a)
	}
}

// TestRange draws within the bounds, with a seed and without.
func TestRange(t *testing.T) {
	check := func() {
		t.Helper()
		for range 1000 {
			if i, n, f := IntN(3), Int64N(5), Float64(); i < 0 || i > 2 || n < 0 || n > 4 || f < 0 || f >= 1 {
				t.Fatalf("drew %d of 3, %d of 5, %v", i, n, f)
			}
		}
	}
	check()
	defer Seed(1)()
	check()
}
