// Package resolver looks up names at name servers as nginx does (ngx_resolver.c): only the name servers are queried, never a
// hosts file, with A and AAAA at the same time. A query that has no response is sent again to the next server, and one whose
// response was truncated is sent over TCP. Results are kept for their time to live.
package resolver

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Options configures a Resolver.
type Options struct {
	// Servers are the name servers, as "host:port" with IP addresses. Lookups begin with one after the other. There must be
	// at least one.
	Servers []string
	// Valid is how long a result is kept. 0 is the least time to live of its records, which may be 0.
	Valid time.Duration
	// NoIPv4 and NoIPv6 leave out A and AAAA. One of them must be false.
	NoIPv4, NoIPv6 bool
	// Log, if not nil, is called with a line about each message that is no response to a query, and each name server that
	// can't be reached. It must be safe for concurrent use.
	Log func(line string)
}

// resendAfter is how long a name server has for its response until the next one is queried.
const resendAfter = 5 * time.Second

// maxAliases is the number of CNAME records that a lookup follows.
const maxAliases = 50

// Resolver looks up names. It is safe for concurrent use. It has no goroutine while no lookup waits for it.
type Resolver struct {
	o    Options
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	turn    int // the server that the next lookup begins with
	known   cache
	running map[key]*lookup
}

// New returns a Resolver.
func New(o Options) *Resolver {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return &Resolver{o: o, dial: new(net.Dialer).DialContext, known: newCache(), running: map[key]*lookup{}}
}

// Addresses are the result of LookupIP.
type Addresses struct {
	List  []netip.Addr // IPv4 first; at least one, at most 512 of a family
	Valid time.Time    // until when the Resolver keeps them
}

// LookupIP returns the addresses of a name, whose case and last dot don't matter. It waits for them as long as ctx allows. The
// error is an *Error, or that of ctx if ctx was cancelled.
func (r *Resolver) LookupIP(ctx context.Context, name string) (Addresses, error) {
	e, err := r.resolve(ctx, key{name: canonical(name)})
	return Addresses{e.addrs, e.valid}, err
}

// resolve finds the entry of a key, and that of its alias if it has one.
func (r *Resolver) resolve(ctx context.Context, k key) (entry, error) {
	var valid time.Time
	for range maxAliases {
		e, err := r.find(ctx, k)
		if err != nil {
			return entry{}, err
		}
		if valid.IsZero() || e.valid.Before(valid) {
			valid = e.valid
		}
		if e.alias == "" {
			e.valid = valid
			return e, nil
		}
		k.name = e.alias
	}
	return entry{}, &Error{Code: NotFound}
}

// key is what is looked up: a name in lower case and without its last dot.
type key struct {
	name    string
	service bool // its SRV records, not its addresses
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// lookup is one that runs, for all that wait for it.
type lookup struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed when entry and err are known
	entry   entry
	err     error
}

// find returns what is known of a key, or looks it up.
func (r *Resolver) find(ctx context.Context, k key) (entry, error) {
	r.mu.Lock()
	if e, ok := r.known.get(k, time.Now()); ok {
		r.mu.Unlock()
		return e, nil
	}
	l := r.running[k]
	if l == nil {
		l = r.start(k)
	}
	l.waiting++
	r.mu.Unlock()
	select {
	case <-l.done:
		return l.entry, l.err
	case <-ctx.Done():
		r.leave(k, l)
		if ctx.Err() == context.DeadlineExceeded {
			return entry{}, &Error{Code: TimedOut}
		}
		return entry{}, ctx.Err()
	}
}

// start begins a lookup. The caller holds r.mu.
func (r *Resolver) start(k key) *lookup {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lookup{cancel: cancel, done: make(chan struct{})}
	r.running[k] = l
	first := r.turn
	r.turn = (r.turn + 1) % len(r.o.Servers)
	go func() {
		defer cancel()
		e, err := r.query(ctx, k, first)
		r.mu.Lock()
		if r.running[k] == l {
			delete(r.running, k)
		}
		if err == nil {
			r.known.put(k, e)
		}
		r.mu.Unlock()
		l.entry, l.err = e, err
		close(l.done)
	}()
	return l
}

// leave ends a lookup that nothing else waits for.
func (r *Resolver) leave(k key, l *lookup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.waiting--; l.waiting > 0 {
		return
	}
	if r.running[k] == l {
		delete(r.running, k)
	}
	l.cancel()
}
