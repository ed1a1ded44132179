package upstream

import (
	"errors"
	"net/http"
	"sync"
)

// BalanceFunc is a Balance of the program's own. It returns the index in available of the target that
// gets the request r, which is nil if Group.Pick was called with nil.
//
// available, which is never empty, holds the targets that can get the request now, in the order of the
// group's targets: those that are up, have less than their MaxConns and were not tried for the
// request. Backup targets are among them only if they are all. During slow start (Options.SlowStart) a
// recovered target is left out of a part of the calls. BalanceFunc may change the slice, and must not
// keep it.
//
// If the index is out of range, for instance -1, no target is selected: it is as if none were
// available. BalanceFunc is called again, with one target less, if the selected one has meanwhile got
// its last possible request. A panic is passed on to the caller of Pick, to which package proxy
// belongs; nothing is held behind it.
//
// BalanceFunc must be safe for concurrent use. While requests wait in the group's queue
// (Options.Queue), it is called with the queue locked, for any of them on the goroutine that has
// released a target: it must not block, since no other request would get a target meanwhile, and must
// not call methods of the Group. A request that does not wait calls it without a lock, on its own
// goroutine.
type BalanceFunc func(r *http.Request, available []Candidate) int

// Candidate is a target that can get a request.
type Candidate struct {
	// Addr and Weight are those of the Target, with the default filled in.
	Addr   string
	Weight int
	// InFlight is the number of the target's requests and tunnels in flight.
	InFlight int
}

func (f BalanceFunc) check([]Target) error {
	if f == nil {
		return errors.New("the BalanceFunc is nil")
	}
	return nil
}

func (f BalanceFunc) newPicker(members []*member, _ picker) picker {
	return &funcPicker{f, members}
}

// funcPicker picks for a BalanceFunc.
type funcPicker struct {
	choose  BalanceFunc
	members []*member
}

// candidates are the available members of one pick, and what the BalanceFunc sees of them.
type candidates struct {
	members []*member
	list    []Candidate
}

var candidateLists = sync.Pool{New: func() any { return new(candidates) }}

func (p *funcPicker) pick(q query) *member {
	c := candidateLists.Get().(*candidates)
	for _, m := range p.members {
		if !q.wasTried(m) && m.usable(q.how) {
			c.members = append(c.members, m)
		}
	}
	q.how = ignoreSlowStart // warm decides at random, so it is called once
	m := p.choice(c, q)
	c.clear() // not behind a panic: the function may have kept the list
	candidateLists.Put(c)
	return m
}

// choice returns the member that the function chooses and that can be acquired, nil for none.
func (p *funcPicker) choice(c *candidates, q query) *member {
	for len(c.members) > 0 {
		c.list = c.list[:0]
		for _, m := range c.members {
			c.list = append(c.list, Candidate{m.Addr, m.Weight, int(m.inFlight.Load())})
		}
		i := p.choose(q.r, c.list)
		if i < 0 || i >= len(c.members) {
			return nil
		}
		m := c.members[i]
		if q.acquire(m) {
			return m
		}
		c.members = append(c.members[:i], c.members[i+1:]...)
	}
	return nil
}

func (c *candidates) clear() {
	clear(c.members[:cap(c.members)])
	clear(c.list[:cap(c.list)])
	c.members, c.list = c.members[:0], c.list[:0]
}
