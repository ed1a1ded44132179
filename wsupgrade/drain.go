package wsupgrade

import (
	"context"
	"slices"
	"sync"
	"time"
)

// drainers is how many tunnels are told at a time. Telling takes as long as a small
// write; a client that takes nothing holds one of them for a second.
const drainers = 64

// Drain refuses new tunnels from then on (503) and ends those that are live: to both
// ends of each WebSocket goes a Close frame with the code, GoingAway or
// ServiceRestart, behind the frame that is under way, and both may answer. Tunnels
// of other protocols know no such word and may end by themselves. When ctx ends,
// what is left is cut, handshakes that are under way too (503). Drain returns when no
// tunnel is left, with ctx's error if it had to cut.
func (r *Registry) Drain(ctx context.Context, code int) error {
	r.refuse(code)
	settled := r.settled()
	defer tellAll(r.list(), code)()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		r.abort()
		<-settled
		return ctx.Err()
	}
}

// DrainOnShutdown returns a function for http.Server.RegisterOnShutdown. Shutdown
// itself does not wait for it, nor for tunnels: a program that must not end before
// calls Drain beside it.
func (r *Registry) DrainOnShutdown(grace time.Duration) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = r.Drain(ctx, GoingAway)
	}
}

// CloseWhere ends the live tunnels for which match says so, as Drain does, and
// returns when they have ended, with ctx's error if they had to be cut. New ones are
// let in as before: for a target or a user that goes.
func (r *Registry) CloseWhere(ctx context.Context, code int, match func(*Tunnel) bool) error {
	matching := slices.DeleteFunc(r.list(), func(t *Tunnel) bool { return !match(t) })
	defer tellAll(matching, code)()
	for _, t := range matching {
		select {
		case <-t.Done():
		case <-ctx.Done():
			for _, t := range matching {
				t.Abort()
			}
			for _, t := range matching {
				<-t.Done()
			}
			return ctx.Err()
		}
	}
	return nil
}

// tellAll closes the tunnels, and does not wait for those that take nothing: wait does. Cutting the tunnels
// ends it at once.
func tellAll(tunnels []*Tunnel, code int) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() {
		places := make(chan struct{}, drainers)
		for _, t := range tunnels {
			places <- struct{}{}
			running.Go(func() {
				t.shut(code, "")
				<-places
			})
		}
	})
	return running.Wait
}
