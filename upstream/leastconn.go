package upstream

import "sync"

// LeastConn asks the target with the fewest requests and tunnels in flight for
// its weight. Among equals they take turns.
func LeastConn() Balance { return leastConn{} }

type leastConn struct{}

func (leastConn) check([]Target) error { return nil }

func (leastConn) over(members []*member, before picker) picker {
	l := &loads{slots: make([]*slot, len(members))}
	turns := map[*state]uint64{}
	if b, ok := before.(*loads); ok {
		turns, l.turn = b.turns()
	}
	for i, m := range members {
		// A target that is new has had no turn.
		s := &slot{m: m, turn: turns[m.state]}
		l.slots[i] = s
		l.in.push(s)
	}
	return l
}

// turns returns the last turns of the members, and of all.
func (l *loads) turns() (of map[*state]uint64, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of = make(map[*state]uint64, len(l.slots))
	for _, s := range l.slots {
		of[s.m.state] = s.turn
	}
	return of, l.turn
}

// loads keeps the members that can be asked in a heap, the least loaded on top,
// and the others beside it.
type loads struct {
	mu    sync.Mutex
	slots []*slot // by member.index
	in    slotHeap
	out   []*slot // could not be asked when it was their turn
	turn  uint64
}

type slot struct {
	m    *member
	load int64  // the requests in flight when its place was found
	turn uint64 // of the last pick: among equals the one that waits longest is next
	at   int    // place in the heap, -1 if it is out
}

func (l *loads) pick(q query) *member {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.out) == 0 && len(l.in) > 0 && q.claim(l.in[0].m) {
		return l.picked() // as it nearly always is
	}
	return l.search(q)
}

// picked counts a pick of the top and finds its new place.
func (l *loads) picked() *member {
	s := l.in[0]
	l.turn++
	s.turn = l.turn
	s.load = s.m.inFlight.Load()
	l.in.down(0)
	return s.m
}

// search looks for one that can be asked.
func (l *loads) search(q query) *member {
	l.readmitOne(q.how)
	var aside []*slot // tried before by this request: nothing is wrong with them
	defer func() {
		for _, s := range aside {
			l.in.push(s)
		}
	}()
	for len(l.in) > 0 {
		s := l.in[0]
		if q.claim(s.m) {
			return l.picked()
		}
		l.in.removeTop()
		if s.m.usable(q.how) {
			aside = append(aside, s)
		} else {
			l.out = append(l.out, s)
		}
	}
	return l.fromOut(q)
}

// readmitOne looks whether one of those that are out can be asked again, so that
// all of them are looked at in turn.
func (l *loads) readmitOne(how admission) {
	if len(l.out) == 0 {
		return
	}
	s := l.out[0]
	l.out = l.out[1:]
	if s.m.usable(how) {
		l.in.push(s)
	} else {
		l.out = append(l.out, s)
	}
}

// fromOut looks at all that are out: there is nobody else.
func (l *loads) fromOut(q query) *member {
	for i, s := range l.out {
		if q.claim(s.m) {
			l.out = append(l.out[:i:i], l.out[i+1:]...)
			l.in.push(s)
			return s.m
		}
	}
	return nil
}

// released finds m's new place.
func (l *loads) released(m *member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.slots[m.index]
	s.load = m.inFlight.Load()
	if s.at >= 0 {
		l.in.up(s.at) // it can only have become less
	}
}

// slotHeap is a binary heap. container/heap's calls through an interface would
// take most of a pick's time.
type slotHeap []*slot

func (s *slot) before(t *slot) bool {
	left, right := (s.load+1)*int64(t.m.Weight), (t.load+1)*int64(s.m.Weight)
	if left != right {
		return left < right
	}
	return s.turn < t.turn || s.turn == t.turn && s.m.index < t.m.index
}

func (h *slotHeap) push(s *slot) {
	s.load = s.m.inFlight.Load()
	*h = append(*h, s)
	s.at = len(*h) - 1
	h.up(s.at)
}

func (h *slotHeap) removeTop() {
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

func (h slotHeap) up(i int) {
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

func (h slotHeap) down(i int) {
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
