package topology

import (
	"maps"
	"slices"
	"sync"
)

// Subscribers are those whom Inputs tell of changes; implementations embed it. The zero value
// has none. It is safe for concurrent use.
type Subscribers struct {
	mu   sync.Mutex
	told map[int]func(string)
	next int
}

// Subscribe serves Inputs.
func (s *Subscribers) Subscribe(changed func(name string)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[int]func(string){}
	}
	s.next++
	id := s.next
	s.told[id] = changed
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.told, id)
	}
}

// Changed tells all of a change. It must be called after what the Inputs say has changed,
// without a lock that their methods take.
func (s *Subscribers) Changed(name string) {
	s.mu.Lock()
	told := slices.Collect(maps.Values(s.told))
	s.mu.Unlock()
	for _, changed := range told {
		changed(name)
	}
}
