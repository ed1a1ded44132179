package wsupgrade

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/fault"
)

// RegistryOptions configures a Registry. The zero value has no caps.
type RegistryOptions struct {
	// Max is how many tunnels there may be, those included whose handshake is under
	// way; 0 means no bound. More are refused (503).
	Max int
	// MaxPerKey is how many there may be with the same Key; 0 means no bound.
	MaxPerKey int
	// Key is what MaxPerKey counts by, a user for instance. nil means the client's
	// address: the one that filters.RealIP has found, else the connection's other
	// end.
	Key func(*http.Request) string
	// RetryAfter is what a refused client is told; 0 means one second.
	RetryAfter time.Duration
}

// Registry knows the live tunnels of one or more Forwarders: it lists them, bounds
// their number and drains them. http.Server.Shutdown does nothing for a connection
// that was taken over; without a drain its WebSockets see the code 1006. It is safe
// for concurrent use.
type Registry struct {
	o RegistryOptions

	mu       sync.Mutex
	draining bool
	code     int            // of the drain
	cut      bool           // the drain's time is over
	entered  int            // tunnels and handshakes under way
	keys     map[string]int // the same for each key; empty without MaxPerKey
	tunnels  map[uint64]*Tunnel
	last     uint64
	cutting  context.Context    // ends when cut is set
	endAll   context.CancelFunc // ends it
	idle     chan struct{}      // closed when nothing is entered any more; nil: nobody waits
}

// NewRegistry checks the options and returns the registry.
func NewRegistry(o RegistryOptions) (*Registry, error) {
	if o.Max < 0 || o.MaxPerKey < 0 || o.RetryAfter < 0 {
		return nil, errors.New("wsupgrade: RegistryOptions: a negative bound")
	}
	if o.Key == nil {
		o.Key = func(r *http.Request) string { return client.Addr(r).String() }
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = time.Second
	}
	r := &Registry{o: o, keys: map[string]int{}, tunnels: map[uint64]*Tunnel{}}
	r.cutting, r.endAll = context.WithCancel(context.Background())
	return r, nil
}

// All returns the tunnels that are live when the loop begins, in the order of their
// IDs.
func (r *Registry) All() iter.Seq[*Tunnel] {
	return func(yield func(*Tunnel) bool) {
		for _, t := range r.list() {
			if !yield(t) {
				return
			}
		}
	}
}

func (r *Registry) list() []*Tunnel {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Tunnel, 0, len(r.tunnels))
	for _, t := range r.tunnels {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Tunnel) int { return int(int64(a.ID - b.ID)) })
	return list
}

// Get returns the live tunnel with the ID, nil if there is none.
func (r *Registry) Get(id uint64) *Tunnel {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tunnels[id]
}

// Len returns how many tunnels are live.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tunnels)
}

// place is a tunnel's right to be there, from before its handshake to its end.
type place struct {
	r   *Registry
	key string
	id  uint64
}

// enter refuses, with a *fault.Error, or gives a place. A nil Registry gives one to
// everybody.
func (r *Registry) enter(in *http.Request) (*place, error) {
	if r == nil {
		return nil, nil
	}
	var key string
	if r.o.MaxPerKey > 0 {
		key = r.o.Key(in)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.draining:
		return nil, r.busy(errDrained)
	case r.o.Max > 0 && r.entered >= r.o.Max:
		return nil, r.busy(errors.New("too many tunnels"))
	case r.o.MaxPerKey > 0 && r.keys[key] >= r.o.MaxPerKey:
		return nil, r.busy(errors.New("too many tunnels of one client"))
	}
	r.entered++
	if r.o.MaxPerKey > 0 {
		r.keys[key]++
	}
	return &place{r: r, key: key}, nil
}

func (r *Registry) busy(cause error) error {
	return &fault.Error{Kind: fault.Busy, Target: "tunnels", RetryAfter: r.o.RetryAfter, Err: cause}
}

// errDrained is the cause of the end of a handshake that a drain has cut.
var errDrained = errors.New("tunnels are drained")

// handshake returns in with a context that also ends when a drain cuts what is left. done must be called when
// the handshake is over.
func (p *place) handshake(in *http.Request) (bounded *http.Request, done func()) {
	if p == nil {
		return in, func() {}
	}
	ctx, cancel := context.WithCancelCause(in.Context())
	stop := context.AfterFunc(p.r.cutting, func() { cancel(errDrained) })
	return in.WithContext(ctx), func() {
		stop()
		cancel(nil)
	}
}

// refusal returns the error of a handshake, which is that of a registry that drains if a drain has cut it.
func (p *place) refusal(in *http.Request, err error) error {
	e := fault.As(err)
	if p == nil || e == nil || e.HeadSent || context.Cause(in.Context()) != errDrained {
		return err
	}
	return &fault.Error{Kind: fault.Busy, Target: "tunnels", RetryAfter: p.r.o.RetryAfter, Wrote: e.Wrote, Err: errDrained}
}

// open lists the tunnel, of which the 101 is out. One whose handshake was under way
// when a drain began is drained like the others.
func (p *place) open(t *Tunnel) {
	if p == nil {
		return
	}
	switch draining, code, cut := p.list(t); {
	case cut:
		t.Abort()
	case draining:
		t.shut(code, "")
	}
}

func (p *place) list(t *Tunnel) (draining bool, code int, cut bool) {
	r := p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	p.id = r.last
	t.ID = p.id
	r.tunnels[p.id] = t
	return r.draining, r.code, r.cut
}

// leave gives the place back.
func (p *place) leave() {
	if p == nil {
		return
	}
	r := p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tunnels, p.id)
	r.entered--
	if r.o.MaxPerKey > 0 {
		if r.keys[p.key]--; r.keys[p.key] == 0 {
			delete(r.keys, p.key)
		}
	}
	if r.entered == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// settled returns what is closed when nothing is entered any more.
func (r *Registry) settled() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	return r.idle
}

// refuse lets nobody in any more.
func (r *Registry) refuse(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining, r.code = true, code
}

// abort cuts the tunnels and the handshakes that are under way.
func (r *Registry) abort() {
	r.mu.Lock()
	r.cut = true
	r.mu.Unlock()
	r.endAll()
	for t := range r.All() {
		t.Abort()
	}
}
