package upstream

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// DynamicOptions configures a Dynamic.
type DynamicOptions struct {
	// Choose names the target of a request. An error that is a *culvert.Error, or wraps one, is the failure of the exchange, for
	// instance one of Kind Forbidden (403) or NoTarget (503). Any other error is one of Kind Internal (500), and so is an
	// invalid Target. Choose is called again for each further attempt of the request. It must be safe for concurrent use, and
	// a panic of it is passed on.
	//
	// The first request that names an Addr with its Scheme, Path, ServerName and TLSConfig determines the other fields of the Target,
	// until it is forgotten. A TLSConfig is known by its pointer: return the same one for the same tenant.
	//
	// If any part of the target comes from the request, a client can have the gateway connect to what only the gateway can
	// reach. Set Group.AllowAddr then: the owner of a name decides where it leads. Required.
	Choose func(r *http.Request) (Target, error)
	// Group configures the transport and the targets, each of which is a group of its own with these options: Queue is the
	// number of requests that may wait for a target, for instance. As the single target of its group it is never taken out
	// by failures. Balance, Source, Check, MaxInFlight and SlowStart can't be set.
	Group Options
	// MaxTargets is how many targets are remembered; 0 means 1024. Above it the one that was used longest ago is forgotten of
	// those that have no requests and tunnels in flight. If all have some, a request for another target is refused (Busy, 503).
	//
	// As many idle connections are kept for all targets together, those that are forgotten included, or Group.MaxIdleConns if that
	// is more: the one that was idle longest is closed. Those of HTTP/2 are bounded by Group.IdleTimeout alone, and those of
	// Group.Transport by its own options.
	MaxTargets int
}

// Dynamic is a Picker of targets that the requests name. Their connections are kept by one Transport. It is safe for
// concurrent use by multiple goroutines.
type Dynamic struct {
	o    DynamicOptions
	own  *Transport // nil if DynamicOptions.Group has one
	name string

	mu       sync.Mutex
	groups   map[dynamicKey]*dynamicTarget
	recent   list.List // of *dynamicTarget, the one that was used last first
	draining bool
}

// dynamicKey tells targets apart.
type dynamicKey struct {
	addr, scheme, path, serverName string
	tls                            *tls.Config // a client certificate may be one tenant's
}

func keyOf(t Target) dynamicKey {
	return dynamicKey{t.Addr, t.Scheme, t.Path, t.ServerName, t.TLSConfig}
}

// dynamicTarget is a target that is remembered. Dynamic.mu guards what is not the group.
type dynamicTarget struct {
	key     dynamicKey
	group   *Group
	place   *list.Element
	picking int // how many requests are about to pick it
}

// NewDynamic returns a Dynamic, or an error if an option is invalid.
func NewDynamic(o DynamicOptions) (*Dynamic, error) {
	fail := func(err error) (*Dynamic, error) { return nil, fmt.Errorf("upstream %q: %w", o.Group.Name, err) }
	switch g := &o.Group; {
	case o.Choose == nil:
		return fail(errors.New("DynamicOptions.Choose is nil"))
	case o.MaxTargets < 0:
		return fail(fmt.Errorf("negative MaxTargets %d", o.MaxTargets))
	case g.Balance != nil || g.Source != nil || g.Check != nil || g.MaxInFlight != 0 || g.SlowStart != 0:
		return fail(errors.New("Balance, Source, Check, MaxInFlight and SlowStart are not possible where requests name the targets"))
	}
	checked, err := o.Group.withDefaults()
	if err != nil {
		return fail(err)
	}
	if o.MaxTargets == 0 {
		o.MaxTargets = 1024
	}
	d := &Dynamic{o: o, name: o.Group.Name, groups: map[dynamicKey]*dynamicTarget{}}
	if o.Group.Transport == nil {
		d.own = newTransportWithin(checked, max(o.MaxTargets, checked.MaxIdleConns))
		d.o.Group.Transport = d.own
	}
	return d, nil
}

// Pick implements Picker.
func (d *Dynamic) Pick(ctx context.Context, r *http.Request, tried ...Lease) (Lease, error) {
	target, err := d.o.Choose(r)
	if err != nil {
		if errs.As(err) == nil {
			err = d.fault(culvert.Internal, err)
		}
		return Lease{}, err
	}
	t, err := d.target(target)
	if err != nil {
		return Lease{}, err
	}
	defer func() {
		d.mu.Lock()
		t.picking--
		d.mu.Unlock()
	}()
	return t.group.Pick(ctx, r, tried...)
}

func (d *Dynamic) fault(kind culvert.ErrorKind, err error) *culvert.Error {
	e := &culvert.Error{Kind: kind, Target: d.name, Err: err}
	if kind == culvert.Busy {
		e.RetryAfter = cmp.Or(d.o.Group.RetryAfter, time.Second)
	}
	return e
}

// target returns the remembered target, which it adds if it is not there. The caller ends its picking.
func (d *Dynamic) target(target Target) (*dynamicTarget, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return nil, d.fault(culvert.Busy, errDraining)
	}
	t := d.groups[keyOf(target)]
	if t == nil {
		var err error
		if t, err = d.add(target); err != nil {
			return nil, err
		}
	}
	d.recent.MoveToFront(t.place)
	t.picking++
	return t, nil
}

// add remembers a target. The caller holds d.mu.
func (d *Dynamic) add(target Target) (*dynamicTarget, error) {
	if len(d.groups) >= d.o.MaxTargets && !d.forget() {
		return nil, d.fault(culvert.Busy, fmt.Errorf("all of %d targets have requests in flight", d.o.MaxTargets))
	}
	g, err := New(d.o.Group, target)
	if err != nil {
		return nil, d.fault(culvert.Internal, err)
	}
	if d.own != nil {
		g.owned = d.own // which its last request closes the connections of, behind Close
	}
	t := &dynamicTarget{key: keyOf(target), group: g}
	t.place = d.recent.PushFront(t)
	d.groups[t.key] = t
	return t, nil
}

// forget forgets the target that was used longest ago, of those that are not in use. The caller holds d.mu.
func (d *Dynamic) forget() bool {
	for e := d.recent.Back(); e != nil; e = e.Prev() {
		t := e.Value.(*dynamicTarget)
		if t.picking == 0 && t.group.gate.Running() == 0 {
			d.recent.Remove(e)
			delete(d.groups, t.key)
			t.group.cancel()
			return true
		}
	}
	return false
}

// Name returns the Name of DynamicOptions.Group.
func (d *Dynamic) Name() string { return d.name }

// Scheme returns "http" or "https".
func (d *Dynamic) Scheme() string { return cmp.Or(d.o.Group.Scheme, "http") }

// InFlight returns the number of requests and tunnels of all targets, waiting requests included.
func (d *Dynamic) InFlight() int { return d.sum((*Group).InFlight) }

// Waiting returns how many requests wait for a target.
func (d *Dynamic) Waiting() int { return d.sum((*Group).Waiting) }

func (d *Dynamic) sum(of func(*Group) int) (n int) {
	d.mu.Lock()
	groups := d.all()
	d.mu.Unlock()
	for _, g := range groups {
		n += of(g)
	}
	return n
}

// all returns the groups of the remembered targets, the one that was used last first.
func (d *Dynamic) all() (groups []*Group) {
	for e := d.recent.Front(); e != nil; e = e.Next() {
		groups = append(groups, e.Value.(*dynamicTarget).group)
	}
	return groups
}

// Targets returns the targets that are remembered, with their status, the one that was used last first.
func (d *Dynamic) Targets() iter.Seq[Status] {
	return func(yield func(Status) bool) {
		d.mu.Lock()
		groups := d.all()
		d.mu.Unlock()
		for _, g := range groups {
			for s := range g.Targets() {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Drain refuses further requests (503). It returns when the requests in flight, tunnels included, have ended, or with ctx's
// error if ctx ends before.
func (d *Dynamic) Drain(ctx context.Context) error {
	d.mu.Lock()
	d.draining = true
	groups := d.all()
	d.mu.Unlock()
	var failed []error
	for _, g := range groups {
		failed = append(failed, g.Drain(ctx))
	}
	return errors.Join(slices.Compact(failed)...)
}

// Close closes idle connections, those of requests in flight when they end. It does not close idle connections of
// DynamicOptions.Group.Transport. It always returns nil.
func (d *Dynamic) Close() error {
	d.mu.Lock()
	groups := d.all()
	d.mu.Unlock()
	for _, g := range groups {
		_ = g.Close()
	}
	if d.own != nil {
		d.own.closer.start()
	}
	return nil
}
