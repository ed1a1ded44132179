package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// picked is the result of a Pick.
type picked struct {
	lease upstream.Lease
	err   error
}

// pickLater starts a Pick and returns a channel on which its result is sent.
func (p *picks) pickLater(ctx context.Context, tried ...upstream.Lease) <-chan picked {
	result := make(chan picked, 1)
	go func() {
		l, err := p.g.Pick(ctx, request(), tried...)
		result <- picked{l, err}
	}()
	synctest.Wait()
	return result
}

// A request that has tried the only free target does not delay those after it in the queue.
func TestWaiterThatTriedTheFreeTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Queue: 4}, upstream.Target{Addr: "a:1", MaxConns: 1, MaxFails: -1}, upstream.Target{Addr: "b:1", MaxConns: 1})
		a, b := p.lease(), p.lease()
		first := p.pickLater(t.Context(), a)
		second := p.pickLater(t.Context())
		third := p.pickLater(t.Context())
		a.Done(outcomes['f'])
		synctest.Wait()
		var got picked
		select {
		case got = <-second:
		default:
			t.Fatal("the second waits though target a is free")
		}
		if name(got.lease) != "a" || len(first) != 0 || len(third) != 0 || p.g.Waiting() != 2 {
			t.Errorf("the second got %s, %d and %d of the others were served, %d wait", name(got.lease), len(first), len(third), p.g.Waiting())
		}
		b.Done(outcomes['s'])
		synctest.Wait()
		if got := <-first; got.err != nil || name(got.lease) != "b" {
			t.Errorf("the first got %v, %v", got.lease, got.err)
		}
		got.lease.Done(outcomes['s'])
		if got := <-third; got.err != nil || name(got.lease) != "a" {
			t.Errorf("the third got %v, %v", got.lease, got.err)
		}
	})
}

// A wait ends when a target's FailTimeout has passed, though nothing else happens then.
func TestWaitForAFailingTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Queue: 2, QueueTimeout: time.Minute}, upstream.Target{Addr: "a:1", MaxConns: 1}, upstream.Target{Addr: "b:1", FailTimeout: 5 * time.Second})
		p.lease()
		p.lease().Done(outcomes['f'])
		start := time.Now()
		first, second := p.pickLater(t.Context()), p.pickLater(t.Context())
		got := <-first
		if waited := time.Since(start); got.err != nil || name(got.lease) != "b" || waited > 5*time.Second+time.Millisecond {
			t.Errorf("picked %v, %v after %v", got.lease, got.err, waited)
		}
		synctest.Wait()
		if len(second) != 0 {
			t.Error("a second request is sent to a target that has not recovered")
		}
		got.lease.Done(outcomes['s'])
		if got := <-second; got.err != nil || name(got.lease) != "b" {
			t.Errorf("picked %v, %v", got.lease, got.err)
		}
	})
}

// A request for which no target can become free fails at once, at any place in the queue.
func TestHopelessWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Queue: 3}, upstream.Target{Addr: "a:1", MaxConns: 1}, upstream.Target{Addr: "b:1", MaxConns: 1, MaxFails: 1})
		a, b := p.lease(), p.lease()
		p.pickLater(t.Context())
		hopeless := p.pickLater(t.Context(), a)
		b.Done(outcomes['f'])
		refused(t, (<-hopeless).err, culvert.NoTarget, "no healthy target is left")
	})
}

// A retry does not wait for a target that it has tried, even if that was removed from the set and added again.
func TestNoWaitForATriedTargetThatCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Balance: upstream.First(), Queue: 1}, upstream.Target{Addr: "a:1", MaxConns: 1, MaxFails: -1})
		tried := p.lease()
		tried.Done(outcomes['f'])
		for _, addr := range []string{"b:1", "a:1"} {
			if err := p.g.Set(upstream.Target{Addr: addr, MaxConns: 1}); err != nil {
				t.Fatal(err)
			}
		}
		p.lease() // the target is full, and could become free
		_, err := p.g.Pick(t.Context(), request(), tried)
		refused(t, err, culvert.NoTarget, "no healthy target is left")
	})
}

// A panic of a key function for a waiting request is passed on to that request's Pick.
func TestKeyPanicsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		broken := false
		key := func(*http.Request) string {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				panic("boom")
			}
			return "k"
		}
		p := newPicks(t, upstream.Options{Balance: upstream.Hash(key), Queue: 2}, upstream.Target{Addr: "a:1", MaxConns: 1})
		held := p.lease()
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = p.g.Pick(t.Context(), request())
		}()
		synctest.Wait()
		mu.Lock()
		broken = true
		mu.Unlock()
		held.Done(outcomes['s'])
		if v := <-panicked; v != "boom" {
			t.Errorf("panic %v", v)
		}
		if p.g.Waiting() != 0 || p.g.InFlight() != 0 {
			t.Errorf("%d wait, %d in flight", p.g.Waiting(), p.g.InFlight())
		}
	})
}

// No request is refused if there are no more requests than places in the targets and the queue: only
// targets that are full at the same moment count.
func TestNoRefusalWithinBounds(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{
		"RoundRobin": upstream.RoundRobin(), "LeastConn": upstream.LeastConn(), "RandomTwo": upstream.RandomTwo(), "First": upstream.First(), "Hash": byKey(), "BalanceFunc": upstream.BalanceFunc(leastInFlight),
	} {
		for queue, clients := range map[int]int{0: 3, 3: 6} {
			t.Run(fmt.Sprintf("%s, %d clients", name, clients), func(t *testing.T) {
				g := newGroup(t, upstream.Options{Balance: balance, Queue: queue}, upstream.Target{Addr: "a:1", MaxConns: 1}, upstream.Target{Addr: "b:1", MaxConns: 2})
				var running sync.WaitGroup
				for range clients {
					running.Go(func() { pickAndRelease(t, g, wiretest.Size(50000, 10000)) })
				}
				running.Wait()
			})
		}
	}
}

func pickAndRelease(t *testing.T, g *upstream.Group, times int) {
	r := request(key(1))
	for i := range times {
		l, err := g.Pick(t.Context(), r)
		if err != nil {
			t.Errorf("request %d: %v", i, err)
			return
		}
		l.Done(outcomes['s'])
	}
}

// With many requests for few places each request is served, and no lease is lost.
func TestQueueUnderLoad(t *testing.T) {
	p := newPicks(t, upstream.Options{Queue: 64}, upstream.Target{Addr: "a:1", MaxConns: 1, MaxFails: -1}, upstream.Target{Addr: "b:1", MaxConns: 2, MaxFails: -1})
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if i < 4 { // its client disconnects while it waits, or after it was served
					go cancel()
				}
				l, err := p.g.Pick(ctx, request())
				switch {
				case err == nil && i%2 == 0:
					l.Done(outcomes['f'])
					if again, err := p.g.Pick(t.Context(), request(), l); err != nil {
						t.Errorf("a retry: %v", err)
					} else {
						again.Done(outcomes['s'])
					}
				case err == nil:
					l.Done(outcomes['s'])
				case i >= 4 || ctx.Err() == nil:
					t.Error(err)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	if p.g.Waiting() != 0 || p.g.InFlight() != 0 {
		t.Errorf("%d wait, %d in flight", p.g.Waiting(), p.g.InFlight())
	}
	for s := range p.g.Targets() {
		if s.InFlight != 0 {
			t.Errorf("%s has %d in flight", s.Target.Addr, s.InFlight)
		}
	}
}

// modelRequest is a request of queueModel.
type modelRequest struct {
	result <-chan picked
	cancel context.CancelFunc
	tried  []upstream.Lease
	lease  upstream.Lease
}

func (r *modelRequest) hasTried(addr string) bool {
	return slices.ContainsFunc(r.tried, func(l upstream.Lease) bool { return l.Addr() == addr })
}

// queueModel is a group with the state of its requests.
type queueModel struct {
	*picks
	t       *testing.T
	waiting []*modelRequest // in FIFO order
	running []*modelRequest
}

// usable reports whether r could be picked a target now, and mayWait whether it could be later.
func (m *queueModel) usable(r *modelRequest) (usable, mayWait bool) {
	for s := range m.g.Targets() {
		if !s.Healthy || r.hasTried(s.Target.Addr) {
			continue
		}
		full := s.Target.MaxConns > 0 && s.InFlight >= s.Target.MaxConns
		usable, mayWait = usable || !full, mayWait || full
	}
	return usable, mayWait
}

// settle takes the results of this step, and checks that they are those of the first requests that
// could have one, and that none waits in vain. joined is the request of this step, nil for none.
func (m *queueModel) settle(queue int, joined *modelRequest) {
	m.t.Helper()
	synctest.Wait()
	var still []*modelRequest
	for _, r := range m.waiting {
		select {
		case got := <-r.result:
			m.finished(r, got, still, queue, r == joined)
		default:
			still = append(still, r)
		}
	}
	m.waiting = still
	for i, r := range still {
		if usable, mayWait := m.usable(r); usable || !mayWait {
			m.t.Fatalf("request %d of %d waits: a target is free: %v, one may become free: %v", i, len(still), usable, mayWait)
		}
	}
	if n := m.g.Waiting(); n != len(still) || n > queue {
		m.t.Fatalf("%d wait, want %d of at most %d", n, len(still), queue)
	}
	inFlight := map[string]int{}
	for _, r := range m.running {
		inFlight[r.lease.Addr()]++
	}
	for s := range m.g.Targets() {
		if s.InFlight != inFlight[s.Target.Addr] {
			m.t.Fatalf("%s has %d in flight, want %d", s.Target.Addr, s.InFlight, inFlight[s.Target.Addr])
		}
	}
}

// finished checks the result of r; the requests in before were received before it and still wait.
func (m *queueModel) finished(r *modelRequest, got picked, before []*modelRequest, queue int, joined bool) {
	m.t.Helper()
	if got.err == nil {
		r.lease = got.lease
		m.running = append(m.running, r)
		if r.hasTried(got.lease.Addr()) {
			m.t.Fatalf("%s was picked again", got.lease.Addr())
		}
		for s := range m.g.Targets() {
			if s.Target.Addr == got.lease.Addr() && s.Target.MaxConns > 0 && s.InFlight > s.Target.MaxConns {
				m.t.Fatalf("%s has %d in flight, over %d", s.Target.Addr, s.InFlight, s.Target.MaxConns)
			}
		}
		for _, other := range before {
			if !other.hasTried(got.lease.Addr()) {
				m.t.Fatalf("%s was given to a request that came later", got.lease.Addr())
			}
		}
		return
	}
	usable, mayWait := m.usable(r)
	switch e := errs.As(got.err); {
	case e.Kind == culvert.NoTarget && !usable && !mayWait:
	case e.Kind == culvert.Busy && joined && !usable && len(before) >= queue:
	default:
		m.t.Fatalf("%v (a target is free: %v, one may become free: %v, %d wait)", got.err, usable, mayWait, len(before))
	}
}

// Over random histories no request waits or is refused while a target that it may use is free, the
// requests that may use a target get it in FIFO order, and no lease is lost.
func TestQueueModel(t *testing.T) {
	random, seed := newRandom()
	balances := []upstream.Balance{upstream.RoundRobin(), upstream.LeastConn(), upstream.RandomTwo(), upstream.First(), byKey(), upstream.IPHash(), upstream.Sticky(upstream.StickyOptions{})}
	for round := range 140 {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("round %d of seed %d", round, seed)
				}
			}()
			some := func() (list []upstream.Target) {
				for _, addr := range []string{"a:1", "b:1", "c:1", "d:1"}[:1+random.IntN(4)] {
					list = append(list, upstream.Target{Addr: addr, MaxConns: random.IntN(3), MaxFails: random.IntN(4) - 1, FailTimeout: time.Duration(1+random.IntN(3)) * time.Second})
				}
				return list
			}
			queue := random.IntN(6)
			m := &queueModel{t: t, picks: newPicks(t, upstream.Options{Balance: balances[round%len(balances)], Queue: queue, QueueTimeout: time.Hour}, some()...)}
			take := func() *modelRequest {
				i := random.IntN(len(m.running))
				r := m.running[i]
				m.running = slices.Delete(m.running, i, i+1)
				return r
			}
			start := func(tried ...upstream.Lease) *modelRequest {
				ctx, cancel := context.WithCancel(t.Context())
				r := &modelRequest{cancel: cancel, tried: tried}
				r.result = m.pickLater(ctx, tried...)
				m.waiting = append(m.waiting, r)
				return r
			}
			for range 80 {
				var joined *modelRequest
				switch n := random.IntN(12); {
				case n < 5:
					joined = start()
				case n < 7 && len(m.running) > 0:
					take().lease.Done(outcomes['s'])
				case n < 9 && len(m.running) > 0: // fails, and its request is retried on another target
					r := take()
					r.lease.Done(outcomes['f'])
					m.settle(queue, nil)
					joined = start(append(slices.Clone(r.tried), r.lease)...)
				case n == 9:
					time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				case n == 10 && len(m.waiting) > 0:
					i := random.IntN(len(m.waiting))
					m.waiting[i].cancel()
					if got := <-m.waiting[i].result; got.err == nil {
						t.Fatal("picked a target for a client that has disconnected")
					}
					m.waiting = slices.Delete(m.waiting, i, i+1)
				case n == 11 && random.IntN(4) == 0:
					if err := m.g.Set(some()...); err != nil {
						t.Fatal(err)
					}
				}
				m.settle(queue, joined)
			}
			for len(m.running) > 0 {
				take().lease.Done(outcomes['s'])
				m.settle(queue, nil)
			}
			for _, r := range m.waiting {
				r.cancel()
			}
			synctest.Wait()
			if m.g.Waiting() != 0 || m.g.InFlight() != 0 {
				t.Errorf("%d wait, %d in flight", m.g.Waiting(), m.g.InFlight())
			}
		})
	}
}
