package upstream

import "sync"

// LeastConn selects the target with the fewest requests and tunnels in flight in
// proportion to its weight. Equal targets take turns.
func LeastConn() Balance { return leastConn{} }

type leastConn struct{}

func (leastConn) check([]Target) error { return nil }

func (leastConn) newPicker(members []*member, before picker) picker {
	l := &leastConnHeap{entries: make([]*entry, len(members))}
	last := map[*state]uint64{}
	if b, ok := before.(*leastConnHeap); ok {
		last, l.turn = b.lastTurns()
	}
	for i, m := range members {
		// A new target has had no turn.
		s := &entry{m: m, turn: last[m.state]}
		l.entries[i] = s
		l.heap.push(s)
	}
	return l
}

// lastTurns returns the number of each member's last turn, and of the last turn of all.
func (l *leastConnHeap) lastTurns() (of map[*state]uint64, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of = make(map[*state]uint64, len(l.entries))
	for _, s := range l.entries {
		of[s.m.state] = s.turn
	}
	return of, l.turn
}

// leastConnHeap keeps the available members in a heap, the least loaded on top,
// and the others in a list.
type leastConnHeap struct {
	mu       sync.Mutex
	entries  []*entry // by member.index
	heap     entryHeap
	excluded []*entry // were not available when it was their turn
	turn     uint64   // the number of the last pick
}

type entry struct {
	m    *member
	load int64  // the requests in flight when its place in the heap was determined
	turn uint64 // of the last pick: among equals the least is next
	at   int    // index in the heap, -1 if it is excluded
}

func (l *leastConnHeap) pick(q query) *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.excluded) == 0 && len(l.heap) > 0 && q.acquire(l.heap[0].m) {
		return l.countPick() // the usual case
	}
	return l.search(q)
}

// countPick counts a pick of the top, moves it to its new place and returns its member.
func (l *leastConnHeap) countPick() *member {
	s := l.heap[0]
	l.turn++
	s.turn = l.turn
	s.load = s.m.inFlight.Load()
	l.heap.down(0)
	return s.m
}

// search acquires the least loaded member that is available; it returns nil if there is none.
func (l *leastConnHeap) search(q query) *member {
	l.readmitOne(q.how)
	var tried []*entry // by this request before; they are available to others
	defer func() {
		for _, s := range tried {
			l.heap.push(s)
		}
	}()
	for len(l.heap) > 0 {
		s := l.heap[0]
		if q.acquire(s.m) {
			return l.countPick()
		}
		l.heap.removeTop()
		if s.m.usable(q.how) {
			tried = append(tried, s)
		} else {
			l.excluded = append(l.excluded, s)
		}
	}
	return l.pickExcluded(q)
}

// readmitOne moves the first of the excluded members into the heap if it is available
// again, or else to the end of their list, so that all of them are checked in turn.
func (l *leastConnHeap) readmitOne(how admission) {
	if len(l.excluded) == 0 {
		return
	}
	s := l.excluded[0]
	l.excluded = l.excluded[1:]
	if s.m.usable(how) {
		l.heap.push(s)
	} else {
		l.excluded = append(l.excluded, s)
	}
}

// pickExcluded acquires one of the excluded members, since the heap has none that is available.
func (l *leastConnHeap) pickExcluded(q query) *member {
	for i, s := range l.excluded {
		if q.acquire(s.m) {
			l.excluded = append(l.excluded[:i:i], l.excluded[i+1:]...)
			l.heap.push(s)
			return s.m
		}
	}
	return nil
}

// released implements releaser: it moves m to its new place in the heap.
func (l *leastConnHeap) released(m *member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.entries[m.index]
	s.load = m.inFlight.Load()
	if s.at >= 0 {
		l.heap.up(s.at) // its load can only have decreased
	}
}

// entryHeap is a binary heap. container/heap's calls through an interface would
// take most of a pick's time.
type entryHeap []*entry

func (s *entry) before(t *entry) bool {
	left, right := (s.load+1)*int64(t.m.Weight), (t.load+1)*int64(s.m.Weight)
	if left != right {
		return left < right
	}
	return s.turn < t.turn || s.turn == t.turn && s.m.index < t.m.index
}

func (h *entryHeap) push(s *entry) {
	s.load = s.m.inFlight.Load()
	*h = append(*h, s)
	s.at = len(*h) - 1
	h.up(s.at)
}

func (h *entryHeap) removeTop() {
	list := *h
	last := len(list) - 1
	list[0].at = -1
	list[0] = list[last]
	*h = list[:last]
	if last > 0 {
		list[0].at = 0
		h.down(0)
	}
}

func (h entryHeap) up(i int) {
	s := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !s.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		h[i].at = i
		i = parent
	}
	h[i] = s
	s.at = i
}

func (h entryHeap) down(i int) {
	s := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(s) {
			break
		}
		h[i] = h[child]
		h[i].at = i
		i = child
	}
	h[i] = s
	s.at = i
}
