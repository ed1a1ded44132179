package choices

import "math/rand/v2"

// Choices is the list of decisions that a history is made of. A fresh one draws them at
// random and records them; one made of a recorded list repeats them, and chooses 0, the
// simplest alternative, where the list has ended. Shrinking therefore needs to know
// nothing of what the decisions mean.
type Choices struct {
	random *rand.Rand // nil: repeats
	list   []uint32
	at     int
}

// New returns the choices of a seed.
func New(seed uint64) *Choices {
	return &Choices{random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// Repeat returns choices that repeat list.
func Repeat(list []uint32) *Choices { return &Choices{list: list} }

// List returns the decisions that were made so far.
func (c *Choices) List() []uint32 { return c.list[:c.at:c.at] }

// Int returns a number from 0 to n-1. 0 should be the simplest alternative.
func (c *Choices) Int(n int) int {
	if n <= 1 {
		return 0
	}
	v := uint32(0)
	switch {
	case c.random != nil:
		v = c.random.Uint32N(uint32(n))
		c.list = append(c.list, v)
	case c.at < len(c.list):
		v = min(c.list[c.at], uint32(n-1))
	}
	c.at++
	if c.random == nil && c.at > len(c.list) {
		c.at = len(c.list)
	}
	return int(v)
}

// Bool returns true once in n times; the simplest alternative is false.
func (c *Choices) Bool(n int) bool {
	if n <= 1 {
		return true
	}
	return c.Int(n) == n-1
}

// Pick returns one of the alternatives.
func Pick[T any](c *Choices, alternatives ...T) T { return alternatives[c.Int(len(alternatives))] }

// Seed returns a number that seeds what need not be shrunk: where segments are cut, how
// long each takes.
func (c *Choices) Seed() uint64 { return uint64(c.Int(1 << 30)) }
