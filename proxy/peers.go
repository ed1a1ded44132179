package proxy

import (
	"sync"
	"time"
)

// peers picks targets and keeps their health. The rules are nginx's
// (ngx_http_upstream_round_robin.c), so that an nginx user finds what max_fails,
// weight and backup did before.
type peers struct {
	balance         Balance
	mu              sync.Mutex
	primary, backup peerGroup
}

type peerGroup struct {
	peers []*peer
	total int // of all weights, those of down targets included
}

// peer is a target and its state, guarded by peers.mu.
type peer struct {
	Target
	current   int // smooth weighted round robin
	effective int // the weight as failures have lowered it
	fails     int
	accessed  time.Time // the last failure
	checked   time.Time // the last failure, or the last try after it
}

// tried remembers which targets an exchange has asked: most have few, so a list
// beats a set.
type tried []*peer

func (t tried) has(p *peer) bool {
	for _, q := range t {
		if p == q {
			return true
		}
	}
	return false
}

// pick chooses a target that is not in done, nil if there is none. client is
// the client's address, as hashKey gives it.
func (p *peers) pick(client hashKey, done tried) *peer {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.balance == IPHash && len(p.primary.peers) > 1 {
		if chosen, ok := p.primary.byHash(client, done, now); ok {
			return chosen
		}
	}
	if chosen := p.primary.next(done, now); chosen != nil {
		return chosen
	}
	return p.backup.next(done, now)
}

// next is one step of the smooth weighted round robin.
func (g *peerGroup) next(done tried, now time.Time) *peer {
	var best *peer
	total := 0
	for _, p := range g.peers {
		if !p.usable(now) || done.has(p) {
			continue
		}
		p.current += p.effective
		total += p.effective
		if p.effective < p.Weight {
			p.effective++
		}
		if best == nil || p.current > best.current {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	best.current -= total
	best.touch(now)
	return best
}

// usable says whether p may be asked.
func (p *peer) usable(now time.Time) bool {
	failing := p.MaxFails > 0 && p.fails >= p.MaxFails && now.Sub(p.checked) <= p.FailTimeout
	return !p.Down && !failing
}

// touch lets one request through to a target whose fail timeout has passed, and
// holds the next ones back until that one has told how the target is.
func (p *peer) touch(now time.Time) {
	if now.Sub(p.checked) > p.FailTimeout {
		p.checked = now
	}
}

// failed counts a failure of q. The only target of an upstream is not counted:
// nothing would be gained by leaving it out.
func (p *peers) failed(q *peer) {
	if len(p.primary.peers)+len(p.backup.peers) == 1 {
		return
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	q.fails++
	q.accessed, q.checked = now, now
	if q.MaxFails > 0 {
		q.effective = max(0, q.effective-q.Weight/q.MaxFails)
	}
}

// succeeded forgets the failures of q that came before its last try.
func (p *peers) succeeded(q *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.accessed.Before(q.checked) {
		q.fails = 0
	}
}
