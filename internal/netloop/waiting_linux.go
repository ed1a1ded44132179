package netloop

import "time"

// waiting holds the waiters of a loop that have a time limit. Those with the same timeout end in
// the order in which they have begun, so each timeout has a FIFO list, and no list is sorted. It is
// guarded by the loop's mu.
type waiting map[time.Duration]*waitList

// waitList is a list of waiters that is never empty.
type waitList struct{ first, last *Waiter }

// add appends w, whose wait begins now.
func (m *waiting) add(w *Waiter, timeout time.Duration) {
	w.timeout, w.deadline = timeout, forever
	if begin := now(); timeout < forever-begin {
		w.deadline = begin + timeout
	}
	list := (*m)[timeout]
	if list == nil {
		if *m == nil {
			*m = waiting{}
		}
		(*m)[timeout] = &waitList{w, w}
		return
	}
	w.prev, list.last.next = list.last, w
	list.last = w
}

// remove removes w, if it has a time limit.
func (m waiting) remove(w *Waiter) {
	list := m[w.timeout]
	if w.timeout == 0 {
		return
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		list.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		list.last = w.prev
	}
	if list.first == nil {
		delete(m, w.timeout)
	}
	w.prev, w.next, w.timeout = nil, nil, 0
}

// next returns when the next wait ends.
func (m waiting) next() time.Duration {
	next := forever
	for _, list := range m {
		next = min(next, list.first.deadline)
	}
	return next
}

// expired returns a waiter whose time is over, nil if there is none.
func (m waiting) expired() *Waiter {
	if len(m) == 0 {
		return nil
	}
	time := now()
	for _, list := range m {
		if list.first.deadline <= time {
			return list.first
		}
	}
	return nil
}
