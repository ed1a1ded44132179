package limit

import "sync"

// Running counts the requests of each key of a limit_conn_zone. It is safe for concurrent use by
// multiple goroutines.
type Running struct {
	keys int // how many there is room for

	mu sync.Mutex
	of map[string]int
}

// NewRunning returns a Running with room for that many keys.
func NewRunning(keys int) *Running { return &Running{keys: keys, of: map[string]int{}} }

// Enter counts one more request, unless there are as many as allowed. known is false if there is
// no room for the key: an entry of a running request can't be removed.
func (r *Running) Enter(key string, most int) (in, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, known := r.of[key]
	switch {
	case !known && len(r.of) >= r.keys:
		return false, false
	case n >= most:
		return false, true
	}
	r.of[key] = n + 1
	return true, true
}

// Leave ends what Enter has counted.
func (r *Running) Leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[key]--; r.of[key] == 0 {
		delete(r.of, key)
	}
}
