package choices_test

import (
	"slices"
	"testing"

	"github.com/culvert-go/culvert/internal/choices"
)

var histories = choices.NewFlags(2000, 2000)

// TestRepeat: a list of choices gives what its seed has given.
func TestRepeat(t *testing.T) {
	histories.Run(t, func(t *testing.T, c *choices.Choices) error {
		bounds := []int{1, 2, 3, 100, 1 << 30}
		var got []int
		for range 20 {
			got = append(got, c.Int(bounds[len(got)%len(bounds)]))
		}
		again := choices.Repeat(c.List())
		for i, want := range got {
			if v := again.Int(bounds[i%len(bounds)]); v != want {
				t.Errorf("choice %d is %d, was %d", i, v, want)
			}
		}
		if !slices.Equal(c.List(), again.List()) || again.Int(7) != 0 || again.Bool(2) {
			t.Error("the end of a list is not the simplest alternative")
		}
		return nil
	})
}

// TestShrink: of a long list is left what its failing needs.
func TestShrink(t *testing.T) {
	c := choices.New(1)
	for range 200 {
		c.Int(1000)
	}
	fails := func(list []uint32) bool { // two decisions of 100 or more, in this order
		at := slices.IndexFunc(list, func(v uint32) bool { return v >= 100 && v%2 == 1 })
		return at >= 0 && slices.ContainsFunc(list[at+1:], func(v uint32) bool { return v >= 100 })
	}
	shrunk := choices.Shrink(c.List(), 3000, fails)
	if !fails(shrunk) || len(shrunk) != 2 {
		t.Errorf("%v is left", shrunk)
	}
}
