package engine

import "sync"

// running counts the requests of each key of a limit_conn_zone.
type running struct {
	keys int // that there is room for

	mu sync.Mutex
	of map[string]int
}

func newRunning(keys int) *running { return &running{keys: keys, of: map[string]int{}} }

// enter counts one more, unless there are as many as there may be. Where there is no room for
// a key, known is false: what runs can't be forgotten.
func (r *running) enter(key string, most int) (in, known bool) {
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

func (r *running) leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[key]--; r.of[key] == 0 {
		delete(r.of, key)
	}
}
