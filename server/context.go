package server

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/http1"
)

// requestContext is the context of a request. It ends when the handler has returned, the client has left, or the context that
// it derives from has ended. Most handlers never wait for that, so the client is watched only for those that do.
type requestContext struct {
	c      *conn
	parent context.Context
	names  fieldnames.List

	// mu guards what follows. The connection's mu may be locked while it is held, not the other way round.
	mu     sync.Mutex
	err    error
	done   chan struct{} // nil: Done was not called
	needed bool          // the client is watched as soon as it can be
	funcs  []*func()
	unbind func() bool // from parent; nil: parent does not end, or is not followed
	looked time.Time   // when Err has looked for the client, or the request's header was received
}

var ended = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Deadline implements context.Context.
func (x *requestContext) Deadline() (time.Time, bool) { return x.parent.Deadline() }

// Value implements context.Context.
func (x *requestContext) Value(key any) any {
	switch key {
	case http.LocalAddrContextKey:
		return x.c.rwc.LocalAddr()
	case fieldnames.Key{}:
		return &x.names // a pointer needs no memory of its own
	}
	return x.parent.Value(key)
}

// Done implements context.Context.
func (x *requestContext) Done() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done == nil {
		if x.err != nil {
			return ended
		}
		x.done = make(chan struct{})
		x.need()
	}
	return x.done
}

// AfterFunc is for context.AfterFunc and for contexts that derive from this one: none of them needs a goroutine. The
// function that is returned reports whether it has prevented the call of f.
func (x *requestContext) AfterFunc(f func()) (stop func() bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		go f()
		return func() bool { return false }
	}
	entry := &f
	x.funcs = append(x.funcs, entry)
	x.need()
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		i := slices.Index(x.funcs, entry)
		if i < 0 {
			return false
		}
		x.funcs = slices.Delete(x.funcs, i, i+1)
		return true
	}
}

// need has the client watched, if the request's body is settled or has ended, and follows the parent. The caller holds x.mu.
func (x *requestContext) need() {
	if x.needed {
		return
	}
	x.needed = true
	if x.parent.Done() != nil {
		x.unbind = context.AfterFunc(x.parent, func() { x.cancel(x.parent.Err()) })
	}
	x.startWatching()
}

// startWatching starts the watch if the handler needs no more of the request, or no more than can be read ahead. The caller
// holds x.mu.
func (x *requestContext) startWatching() {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if e := x.c.current; e != nil && &e.ctx == x && (e.body.ended.Load() || e.body.settled.Load()) {
		x.c.startWatching(e)
	}
}

// bodySettled is called when the request's body was read to its end, and when it is settled.
func (x *requestContext) bodySettled() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.needed {
		x.startWatching()
	}
}

// lookEvery is how often Err looks for the client at most.
const lookEvery = time.Millisecond

// Err implements context.Context. Where it can, it looks at the socket in place of having the client watched.
func (x *requestContext) Err() error {
	x.mu.Lock()
	if x.err == nil && !x.needed {
		if x.err = x.parent.Err(); x.err == nil && !x.look() {
			x.mu.Unlock()
			x.cancel(context.Canceled)
			x.mu.Lock()
		}
	}
	defer x.mu.Unlock()
	return x.err
}

// look reports whether the client is there, as far as it is known. The caller holds x.mu.
func (x *requestContext) look() bool {
	now := time.Now()
	if now.Sub(x.looked) < lookEvery {
		return true
	}
	x.looked = now
	x.c.mu.Lock()
	e := x.c.current
	ended := e != nil && e.body.ended.Load()
	if e == nil || &e.ctx != x || !ended && !e.body.settled.Load() || x.c.hijacked {
		x.c.mu.Unlock()
		return true
	}
	if !ended && !e.body.mu.TryLock() { // it is read, and may be moved, which peeks as well
		x.c.mu.Unlock()
		return true
	}
	found := x.c.peek.Look()
	if !ended {
		e.body.mu.Unlock()
	}
	x.c.mu.Unlock()
	// Bytes may mean that the client ends TLS, or stand before the end.
	if found == http1.Unknown || found == http1.Bytes && !(x.c.plain && ended) {
		x.need()
	}
	return found != http1.Ended
}

// cancel ends the context with err, unless it has ended before.
func (x *requestContext) cancel(err error) {
	x.mu.Lock()
	if x.err != nil && x.funcs == nil && x.done == nil {
		x.mu.Unlock()
		return
	}
	if x.err == nil {
		x.err = err
	}
	if x.done != nil && x.done != ended {
		close(x.done)
		x.done = ended
	}
	funcs, unbind := x.funcs, x.unbind
	x.funcs, x.unbind = nil, nil
	x.mu.Unlock()
	if unbind != nil {
		unbind()
	}
	for _, f := range funcs {
		(*f)()
	}
}
