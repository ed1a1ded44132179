package simulate

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// concurrencyKind bounds how many requests run at the same time.
var concurrencyKind = filterKind{
	name: "Concurrency",
	make: func(g *gateway, p FilterPlan) (culvert.Filter, error) {
		l := &limited{g: g, present: map[*visit]bool{}, max: [filterOptions]int{3, 1, 2, 1, 5, 2}[p.A], queue: [filterOptions]int{3, 0, 1, 10, 0, 1}[p.B], timeout: g.plan.takes(10 * time.Second)}
		if p.A == 3 {
			l.timeout = g.plan.takes(time.Second)
		}
		o := filters.ConcurrencyOptions{Max: l.max, Queue: l.queue, QueueTimeout: l.timeout}
		f, err := filters.Concurrency(o)
		if err != nil {
			return nil, err
		}
		if g.plan.exact() {
			g.checks = append(g.checks, l.check)
		}
		return func(next http.Handler) http.Handler { return l.outside(f(l.inside(next))) }, nil
	},
}

// limited counts the requests that run and that wait in a Concurrency.
type limited struct {
	g          *gateway
	max, queue int
	timeout    time.Duration

	mu      sync.Mutex
	present map[*visit]bool
	running int
}

// visit is a request that has arrived, and has not left.
type visit struct {
	entered bool
	peak    int // the most that were present at once meanwhile: any of them may have had the place
}

// enter adds a request to those that are present.
func (l *limited) enter() *visit {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &visit{}
	l.present[v] = true
	for other := range l.present {
		other.peak = max(other.peak, len(l.present))
	}
	return v
}

type enteredKey struct{}

// outside counts the requests that reach the Concurrency.
func (l *limited) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, v := time.Now(), l.enter()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.present, v)
			if v.entered {
				return
			}
			waited := time.Since(begun)
			l.g.journal.effects.Add("Concurrency refuses", 1)
			room := l.max + l.queue
			if query := r.URL.Query(); query.Get("limit") == "500" && (query.Get("resourceVersionMatch") == "Exact" || query.Has("continue")) {
				room = l.max // a list of watchcodec.NewFilter's, which waits for no place
			}
			if v.peak <= room && waited < l.timeout && r.Context().Err() == nil || waited > l.timeout && l.g.plan.exact() || w.Header().Get("Retry-After") != "1" {
				l.g.journal.Break("limit", "%s is refused after %v, with %d present of %d and %d", r.URL.Path, waited, v.peak, l.max, l.queue)
			}
		}()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), enteredKey{}, entry{l, begun, &v.entered, r.Context()})))
	})
}

// entry is a request on its way through a Concurrency.
type entry struct {
	l       *limited
	begun   time.Time
	entered *bool
	outer   context.Context
}

// inside counts the requests that the Concurrency lets through.
func (l *limited) inside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, _ := r.Context().Value(enteredKey{}).(entry)
		*e.entered = true
		l.mu.Lock()
		if l.running++; l.running > l.max {
			l.g.journal.Break("limit", "%d requests run, at most %d are allowed", l.running, l.max)
		}
		l.mu.Unlock()
		if waited := time.Since(e.begun); waited > l.timeout && l.g.plan.exact() {
			l.g.journal.Break("limit", "%s waited %v, of %v", r.URL.Path, waited, l.timeout)
		}
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.running--
		}()
		next.ServeHTTP(w, r)
	})
}

// check checks the counts. It is called at instants at which nothing else happens.
func (l *limited) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting := len(l.present) - l.running; waiting > 0 && l.running < l.max || waiting > l.queue {
		l.g.journal.Break("limit", "%d requests wait while %d run of %d", waiting, l.running, l.max)
	}
}

// timeoutName is the name of timeoutKind.
const timeoutName = "Timeout"

// timeout returns the timeout of a filter of timeoutKind.
func (p FilterPlan) timeout() time.Duration {
	return seconds([filterOptions]int{20, 5, 1, 60, 2, 120}[p.A])
}

// timeoutKind bounds the time to the header.
var timeoutKind = filterKind{
	name: timeoutName,
	make: func(g *gateway, p FilterPlan) (culvert.Filter, error) {
		most := g.plan.takes(p.timeout())
		f, err := filters.Timeout(most)
		if err != nil {
			return nil, err
		}
		timed := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begun := time.Now()
				filters.OnResponse(filters.ResponseHooks{Header: func(r *http.Request, status int, _ http.Header) {
					took := time.Since(begun)
					if took >= most {
						g.journal.effects.Add(timeoutName, 1)
					}
					if took > most+g.unwatched()+g.interims(r)+g.traces(r)+lateEnd && g.plan.exact() {
						g.journal.Break("time", "%s: the header took %v, of %v", r.URL.Path, took, most)
					}
				}})(next).ServeHTTP(w, r)
			})
		}
		return func(next http.Handler) http.Handler { return timed(f(next)) }, nil
	},
}

// unwatched is how much later than the timeout the proxy's own exchange may notice it (filters.Timeout).
func (g *gateway) unwatched() time.Duration {
	if g.plan.Gateway.Transport || g.plan.Gateway.H2Targets {
		return 0
	}
	return 10 * time.Millisecond
}

// interims returns how long the client may hold interim responses up, which nothing but the WriteTimeout ends, or over
// HTTP/2 the server's WriteByteTimeout behind another stream's write (proxy.Options.WriteTimeout).
func (g *gateway) interims(r *http.Request) time.Duration {
	token, _ := tokenOf(r.URL.EscapedPath())
	e := g.exchange(token)
	if e == nil {
		return 0
	}
	most := time.Duration(0)
	for i := range e.Responses {
		if e.Responses[i].hasInterim() {
			most = g.plan.Gateway.WriteTimeout * 5 / 4
			if r.ProtoMajor == 2 {
				most += 2 * writeByteTimeout
			}
		}
	}
	return most
}

// traces returns how long the program's trace of a connection may take. The transport calls the trace before it checks the
// timeout.
func (g *gateway) traces(r *http.Request) time.Duration {
	token, _ := tokenOf(r.URL.EscapedPath())
	if e := g.exchange(token); e != nil {
		return e.TracePause
	}
	return 0
}
