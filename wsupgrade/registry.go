package wsupgrade

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/gate"
)

// RegistryOptions configures a Registry. The zero value sets no bounds.
type RegistryOptions struct {
	// Max is how many tunnels there may be, those included whose handshake is under
	// way; 0 means no bound. More are refused (503).
	Max int
	// MaxPerKey is how many there may be with the same Key; 0 means no bound.
	MaxPerKey int
	// Key returns what MaxPerKey counts by, a user for instance. nil means the client's address:
	// the one that filters.RealIP has found, else the connection's remote address.
	Key func(*http.Request) string
	// RetryAfter is the Retry-After of a refusal; 0 means one second.
	RetryAfter time.Duration
}

// Registry holds the live tunnels of one or more Forwarders: it lists them, bounds their number and
// drains them. http.Server.Shutdown does nothing for a connection that was taken over; without a
// drain its WebSockets see the code 1006. It is safe for concurrent use by multiple goroutines.
type Registry struct {
	o        RegistryOptions
	admitted gate.Gate // tunnels and handshakes under way

	mu        sync.Mutex
	draining  bool           // set before admitted is closed
	code      int            // of the drain
	cut       bool           // the drain's time is over
	keys      map[string]int // what was admitted for each key; empty without MaxPerKey
	tunnels   map[uint64]*Tunnel
	last      uint64
	cutCtx    context.Context    // ends when cut is set
	cancelCtx context.CancelFunc // ends cutCtx
}

// NewRegistry checks o and returns the Registry. It returns an error for a negative bound.
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
	r.cutCtx, r.cancelCtx = context.WithCancel(context.Background())
	return r, nil
}

// All returns an iterator over the tunnels that are live when the loop begins, in the order of
// their IDs.
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

// admission is a tunnel's share of the bounds, from before its handshake to its end.
type admission struct {
	r   *Registry
	key string
	id  uint64
}

// admit returns an admission, or a *culvert.Error if the Registry drains or a bound is reached. A nil
// Registry admits every request.
func (r *Registry) admit(in *http.Request) (*admission, error) {
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
		return nil, r.busyError(errDrained)
	case r.o.Max > 0 && r.admitted.Running() >= r.o.Max:
		return nil, r.busyError(errors.New("too many tunnels"))
	case r.o.MaxPerKey > 0 && r.keys[key] >= r.o.MaxPerKey:
		return nil, r.busyError(errors.New("too many tunnels of one client"))
	}
	r.admitted.Enter()
	if r.o.MaxPerKey > 0 {
		r.keys[key]++
	}
	return &admission{r: r, key: key}, nil
}

func (r *Registry) busyError(cause error) error {
	return &culvert.Error{Kind: culvert.Busy, Target: "tunnels", RetryAfter: r.o.RetryAfter, Err: cause}
}

// errDrained is the cause with which a drain cancels a handshake.
var errDrained = errors.New("tunnels are drained")

// bindContext returns in with a context that also ends when a drain cuts the remaining tunnels.
// done must be called when the handshake is over.
func (a *admission) bindContext(in *http.Request) (bounded *http.Request, done func()) {
	if a == nil {
		return in, func() {}
	}
	ctx, cancel := context.WithCancelCause(in.Context())
	stop := context.AfterFunc(a.r.cutCtx, func() { cancel(errDrained) })
	return in.WithContext(ctx), func() {
		stop()
		cancel(nil)
	}
}

// refusal returns the error of a handshake: that of a draining registry if a drain has cut the
// handshake, else err.
func (a *admission) refusal(in *http.Request, err error) error {
	e := errs.As(err)
	if a == nil || e == nil || e.HeaderSent || context.Cause(in.Context()) != errDrained {
		return err
	}
	return &culvert.Error{Kind: culvert.Busy, Target: "tunnels", RetryAfter: a.r.o.RetryAfter, BytesSent: e.BytesSent, Err: errDrained}
}

// register lists the tunnel, whose 101 was sent. One whose handshake was under way when a drain
// began is drained like the others.
func (a *admission) register(t *Tunnel) {
	if a == nil {
		return
	}
	switch draining, code, cut := a.add(t); {
	case cut:
		t.Abort()
	case draining:
		t.requestClose(code, "")
	}
}

func (a *admission) add(t *Tunnel) (draining bool, code int, cut bool) {
	r := a.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	a.id = r.last
	t.ID = a.id
	r.tunnels[a.id] = t
	return r.draining, r.code, r.cut
}

// release gives the admission back, and takes its tunnel off the list.
func (a *admission) release() {
	if a == nil {
		return
	}
	r := a.r
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tunnels, a.id)
	if r.o.MaxPerKey > 0 {
		if r.keys[a.key]--; r.keys[a.key] == 0 {
			delete(r.keys, a.key)
		}
	}
	r.admitted.Leave()
}

// startDraining refuses every later tunnel.
func (r *Registry) startDraining(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining, r.code = true, code
}

// abortAll cuts the tunnels and the handshakes that are under way.
func (r *Registry) abortAll() {
	r.mu.Lock()
	r.cut = true
	r.mu.Unlock()
	r.cancelCtx()
	for t := range r.All() {
		t.Abort()
	}
}
