package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Tally counts by names. The zero Tally is empty. It is safe for concurrent use.
type Tally struct {
	mu sync.Mutex
	n  map[string]int
}

// Add adds n to a name's count.
func (t *Tally) Add(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[name] += n
}

// AddAll adds another tally's counts.
func (t *Tally) AddAll(other *Tally) {
	other.mu.Lock()
	counts := maps.Clone(other.n)
	other.mu.Unlock()
	for name, n := range counts {
		t.Add(name, n)
	}
}

// Sum returns the sum of all counts.
func (t *Tally) Sum() (sum int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.n {
		sum += n
	}
	return sum
}

// String lists the counts by name.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(t.n)) {
		list = append(list, fmt.Sprintf("%s %d", name, t.n[name]))
	}
	return strings.Join(list, ", ")
}
