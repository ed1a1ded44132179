package acme

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
)

// The pauses behind a failure: authorities limit how many there may be in an hour.
const (
	firstPause = time.Minute
	lastPause  = 6 * time.Hour

	shortestPause = time.Second
)

// Run obtains and renews the certificates of orders until ctx ends. Orders of one issuer are served one after the other. failed
// is called with each failure, and issued when a certificate was obtained; neither at the same time as itself.
func Run(ctx context.Context, s *Store, orders []*Order, failed func(*Error), issued func(*Order)) {
	byIssuer := map[*Issuer][]*Order{}
	for _, o := range orders {
		byIssuer[o.Issuer] = append(byIssuer[o.Issuer], o)
	}
	var mu sync.Mutex
	report := func(do func()) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			do()
		}
	}
	var all sync.WaitGroup
	for _, list := range byIssuer {
		all.Go(func() {
			w := worker{store: s}
			for _, o := range list {
				w.jobs = append(w.jobs, &job{order: o})
			}
			w.run(ctx, func(e *Error) { report(func() { failed(e) }) }, func(o *Order) { report(func() { issued(o) }) })
		})
	}
	all.Wait()
}

// worker serves the orders of one issuer.
type worker struct {
	store  *Store
	jobs   []*job
	client *acme.Client // nil: it has no account yet
}

// job is an order and when it is due.
type job struct {
	order    *Order
	due      time.Time
	failures int
	overdue  int // certificates in a row that were due when they were issued
}

// served sets when a job is due behind its certificate. fresh reports whether that was issued just now. Authorities limit how many
// they issue: the next one is not requested before a minute is over, for a short life before a third of it, and later and later where
// the clock, or the authority's, makes each be due at once.
func (j *job) served(c *Certificate, fresh bool, now time.Time) {
	j.failures, j.due = 0, due(c)
	if !fresh {
		return
	}
	wait := max(min(firstPause, c.life()/3), shortestPause)
	if c.renewal().After(now) {
		j.overdue = 0
	} else {
		wait = pause(j.overdue, nil)
		j.overdue++
	}
	if earliest := now.Add(wait); j.due.Before(earliest) {
		j.due = earliest
	}
}

func (w *worker) run(ctx context.Context, failed func(*Error), issued func(*Order)) {
	for _, j := range w.jobs {
		if err := w.load(j); err != nil {
			failed(err)
		}
	}
	for {
		next := w.jobs[0]
		for _, j := range w.jobs {
			if j.due.Before(next.due) {
				next = j
			}
		}
		if !sleep(ctx, time.Until(next.due)) {
			return
		}
		fresh, err := w.serve(ctx, next.order)
		if err != nil {
			next.due = time.Now().Add(pause(next.failures, err.Err))
			next.failures++
			failed(err)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		next.served(w.store.Certificate(next.order), fresh, time.Now())
		if fresh {
			issued(next.order)
		}
	}
}

// serve obtains the certificate of an order. It reports whether it is a new one: another configuration may have obtained it.
func (w *worker) serve(ctx context.Context, o *Order) (fresh bool, failure *Error) {
	unlock, ok := w.store.lock(ctx, o.Issuer)
	if !ok {
		return false, nil
	}
	defer unlock()
	if have := w.store.Certificate(o); have != nil && time.Now().Before(have.renewal()) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if w.client == nil {
		client, err := w.store.account(ctx, o.Issuer)
		if err != nil {
			return false, o.failure("account", err)
		}
		w.client = client
	}
	failure = w.store.obtain(ctx, w.client, o)
	return failure == nil, failure
}

// load reads the certificate of a job that is kept, and sets when the job is due.
func (w *worker) load(j *job) *Error {
	have := w.store.Certificate(j.order)
	if have == nil {
		text, err := folder(j.order.Issuer.Folder).read(fileOf(j.order))
		if err == nil && text != nil {
			have, err = parseCertificate(text, text, j.order.Names, time.Now())
		}
		if err != nil {
			return j.order.failure("state", err)
		}
		if have != nil {
			w.store.setCertificate(j.order, have)
		}
	}
	if have != nil {
		j.due = due(have)
	}
	return nil
}

// due returns when a certificate is to be renewed. Those of many servers are not renewed together.
func due(c *Certificate) time.Time {
	return c.renewal().Add(time.Duration(rand.Float64() * float64(c.life()) / 20))
}

// pause returns how long to wait behind a number of failures in a row, of which err is the last: at least as long as the
// authority says.
func pause(failures int, err error) time.Duration {
	said, _ := acme.RateLimit(err)
	return max(min(firstPause<<min(failures, 20), lastPause), min(said, lastPause))
}

// sleep reports false if ctx has ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
