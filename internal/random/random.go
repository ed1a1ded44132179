// Package random is where the gateway's random decisions come from, so that a simulated history can repeat them.
// It is not for secrets.
package random

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// seeded is what a test has set.
var seeded atomic.Pointer[source]

// source is a seeded source of numbers.
type source struct {
	mu  sync.Mutex
	pcg rand.PCG
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}

// Seed makes all numbers of the process follow from seed, until the function it returns is called. It is for
// tests, of which one at a time may use it.
func Seed(seed uint64) (unseed func()) {
	s := new(source)
	s.pcg.Seed(seed, 0)
	seeded.Store(s)
	return func() { seeded.Store(nil) }
}

// IntN returns a number from 0 to n-1. It panics if n is not positive.
func IntN(n int) int { return int(Int64N(int64(n))) }

// Int64N returns a number from 0 to n-1. It panics if n is not positive.
func Int64N(n int64) int64 {
	if s := seeded.Load(); s != nil {
		return rand.New(s).Int64N(n)
	}
	return rand.Int64N(n)
}

// Float64 returns a number from 0 to 1, 1 not included.
func Float64() float64 {
	if s := seeded.Load(); s != nil {
		return rand.New(s).Float64()
	}
	return rand.Float64()
}
