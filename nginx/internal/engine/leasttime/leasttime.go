// Package leasttime chooses the server of an upstream that is expected to be done first, by nginx's estimate
// (ngx_http_upstream_least_time_module.c).
package leasttime

import (
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

const (
	slowest = 5000 // milliseconds: slower servers count as equal, so that the one with fewer requests is chosen
	cluster = 20   // milliseconds: times that differ by less are equal
	share   = 0.05 // of the last time in an average
)

// Peers are the servers of an upstream, by their addresses. They are safe for concurrent use by multiple goroutines.
type Peers struct {
	// Inflight lets requests that have not ended count with the time that they have taken.
	Inflight bool
	// FailTimeout returns a server's fail_timeout: after each such time without a request its average counts for half.
	FailTimeout func(addr string) time.Duration

	mu    sync.Mutex
	peers map[string]*peer
}

// peer is what is known of a server. Times are in milliseconds.
type peer struct {
	average float64   // 0: none is known
	checked time.Time // when the server was last chosen after its fail_timeout
	current int       // of the weighted round robin among equals

	running  int // requests
	spent    time.Duration
	changed  time.Time // when spent was right
	inflight float64
}

func (p *Peers) peer(addr string) *peer {
	if p.peers == nil {
		p.peers = map[string]*peer{}
	}
	one := p.peers[addr]
	if one == nil {
		one = &peer{}
		p.peers[addr] = one
	}
	return one
}

// Choose is an upstream.BalanceFunc.
func (p *Peers) Choose(_ *http.Request, available []upstream.Candidate) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	best, bestTime := 0, 0
	var equal []int
	for i, c := range available {
		eta := p.eta(c, now)
		left, right := eta*available[best].Weight, bestTime*c.Weight
		switch {
		case i == 0 || left < right:
			best, bestTime, equal = i, eta, append(equal[:0], i)
		case left == right:
			equal = append(equal, i)
		}
	}
	if len(equal) > 1 {
		best = p.turn(available, equal)
	}
	one := p.peer(available[best].Addr)
	if now.Sub(one.checked) > p.failTimeout(available[best].Addr) {
		one.checked = now
	}
	return best
}

// turn lets equal servers take turns, by weight.
func (p *Peers) turn(available []upstream.Candidate, equal []int) int {
	best, total := equal[0], 0
	for _, i := range equal {
		one := p.peer(available[i].Addr)
		one.current += available[i].Weight
		total += available[i].Weight
		if one.current > p.peer(available[best].Addr).current {
			best = i
		}
	}
	p.peer(available[best].Addr).current -= total
	return best
}

func (p *Peers) failTimeout(addr string) time.Duration {
	if p.FailTimeout == nil {
		return 0
	}
	return p.FailTimeout(addr)
}

// eta estimates when a server would be done with one more request.
func (p *Peers) eta(c upstream.Candidate, now time.Time) int {
	one := p.peer(c.Addr)
	if one.running > 0 {
		add(&one.inflight, one.spent/time.Duration(one.running)+now.Sub(one.changed))
	}
	ms := int(one.average)
	timeout := p.failTimeout(c.Addr)
	if idle := now.Sub(one.checked); idle > timeout {
		ms >>= min(int64(idle/(timeout.Truncate(time.Second)+time.Second)), 31)
	}
	if one.running > 0 {
		ms = max(ms, int(one.inflight))
	}
	if ms > slowest {
		ms = slowest
	} else {
		ms += cluster - ms%cluster
	}
	return ms * (1 + c.InFlight)
}

// add adds a time to an average.
func add(average *float64, d time.Duration) {
	ms := float64(d.Milliseconds())
	if *average >= 1 {
		ms = 0.5 + ms*share + *average*(1-share)
	}
	*average = ms
}

// Begin counts a request that begins. The function that it returns is called with the time that counts when that is known, or with a
// negative one if the request has failed. Only its first call counts.
func (p *Peers) Begin(addr string) (end func(took time.Duration)) {
	began := time.Now()
	if p.Inflight {
		p.mu.Lock()
		one := p.peer(addr)
		one.account(began)
		one.running++
		p.mu.Unlock()
	}
	var once sync.Once
	return func(took time.Duration) { once.Do(func() { p.end(addr, began, took) }) }
}

func (p *Peers) end(addr string, began time.Time, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.peer(addr)
	if p.Inflight {
		now := time.Now()
		one.account(now)
		one.running--
		if one.spent -= now.Sub(began); one.running == 0 {
			one.spent = 0
		}
	}
	if took >= 0 {
		add(&one.average, took)
	}
}

// account adds the time since the last change to that of each request that runs.
func (one *peer) account(now time.Time) {
	if one.running > 0 {
		one.spent += now.Sub(one.changed) * time.Duration(one.running)
	}
	one.changed = now
}
