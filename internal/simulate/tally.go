package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Tally holds counts by name. The zero Tally is empty. It is safe for concurrent use.
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

// AddFields counts the fields of a struct that are not zero.
func (t *Tally) AddFields(of any) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			t.Add(v.Type().Field(i).Name, 1)
		}
	}
}

// MarshalJSON returns the counts by name.
func (t *Tally) MarshalJSON() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return json.Marshal(t.n)
}

// UnmarshalJSON replaces the counts.
func (t *Tally) UnmarshalJSON(text []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n = nil
	return json.Unmarshal(text, &t.n)
}

// Table lists the counts by name, three to a line.
func (t *Tally) Table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	names := slices.Sorted(maps.Keys(t.n))
	for i, name := range names {
		fmt.Fprintf(&b, "  %-28s %9d", name, t.n[name])
		if i%3 == 2 || i == len(names)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
