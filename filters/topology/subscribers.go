package topology

import (
	"maps"
	"slices"
	"sync"

	"github.com/culvert-go/culvert/internal/panics"
)

// Subscribers holds the subscribers of Inputs. Implementations of Inputs embed it. The zero value
// has no subscribers. It is safe for concurrent use by multiple goroutines.
type Subscribers struct {
	mu        sync.Mutex
	callbacks map[int]func(string)
	next      int
}

// Subscribe implements Inputs.
func (s *Subscribers) Subscribe(changed func(name string)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callbacks == nil {
		s.callbacks = map[int]func(string){}
	}
	s.next++
	id := s.next
	s.callbacks[id] = changed
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.callbacks, id)
	}
}

// Changed calls all subscribers with name. It must be called after the methods of the Inputs return
// the change, and without a lock that those methods acquire. A subscriber that panics is logged with
// slog.Default(), and the others are called.
func (s *Subscribers) Changed(name string) {
	s.mu.Lock()
	callbacks := slices.Collect(maps.Values(s.callbacks))
	s.mu.Unlock()
	for _, changed := range callbacks {
		callContained(changed, name)
	}
}

// callContained calls changed and contains its panic, which would end the program on the goroutine of a Watch.
func callContained(changed func(string), name string) {
	defer panics.Contain(nil, "topology.Subscribers.Subscribe's changed")
	changed(name)
}
