package topology

import (
	"maps"
	"slices"
	"sync"

	"github.com/culvert-go/culvert/internal/panics"
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
// without a lock that their methods take. A panic of one of them is logged with slog.Default(), and the others are told.
func (s *Subscribers) Changed(name string) {
	s.mu.Lock()
	told := slices.Collect(maps.Values(s.told))
	s.mu.Unlock()
	for _, changed := range told {
		tell(changed, name)
	}
}

// tell calls one of them: on the goroutine of a Watch a panic would end the program.
func tell(changed func(string), name string) {
	defer panics.Contain(nil, "topology.Subscribers.Subscribe's changed")
	changed(name)
}
