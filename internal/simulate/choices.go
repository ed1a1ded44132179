package simulate

import "github.com/culvert-go/culvert/internal/choices"

// Choices is the list of decisions that a history is made of.
type Choices = choices.Choices

// NewChoices returns the choices of a seed.
func NewChoices(seed uint64) *Choices { return choices.New(seed) }

// Repeat returns choices that repeat list.
func Repeat(list []uint32) *Choices { return choices.Repeat(list) }

// Pick returns one of the alternatives.
func Pick[T any](c *Choices, alternatives ...T) T { return choices.Pick(c, alternatives...) }

// Shrink returns a shorter and simpler list of choices for which fails still holds. It
// tries at most budget lists.
func Shrink(list []uint32, budget int, fails func([]uint32) bool) []uint32 {
	return choices.Shrink(list, budget, fails)
}
