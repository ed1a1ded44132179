package wsupgrade

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxClosing is how many tunnels are sent Close frames at a time. That takes as long as a small
// write; a client that accepts nothing takes up one of them for a second.
const maxClosing = 64

// Drain refuses new tunnels from then on (503) and ends those that are live: both ends of each
// WebSocket are sent a Close frame with the code, GoingAway or ServiceRestart, after the frame that
// is under way, and may respond with theirs. Other protocols have no such message, and their
// tunnels may end by themselves. When ctx ends, the remaining tunnels are cut, and so are
// handshakes that are under way (503). Drain returns when no tunnel remains, with ctx's error if it
// had to cut.
func (r *Registry) Drain(ctx context.Context, code int) error {
	r.startDraining(code)
	defer closeAll(r.list(), code)()
	err := r.admitted.Drain(ctx)
	if err != nil {
		r.abortAll()
		_ = r.admitted.Drain(context.Background())
	}
	return err
}

// DrainOnShutdown returns a function for http.Server.RegisterOnShutdown, which drains with
// GoingAway for the time of grace. Shutdown itself waits neither for it nor for tunnels: a program
// that must not end before them calls Drain as well.
func (r *Registry) DrainOnShutdown(grace time.Duration) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = r.Drain(ctx, GoingAway)
	}
}

// CloseWhere ends the live tunnels for which match returns true, as Drain does, and returns when
// they have ended, with ctx's error if they had to be cut. New ones are admitted as before. It is
// for a target or a user that is removed.
func (r *Registry) CloseWhere(ctx context.Context, code int, match func(*Tunnel) bool) error {
	matching := slices.DeleteFunc(r.list(), func(t *Tunnel) bool { return !match(t) })
	defer closeAll(matching, code)()
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

// closeAll sends the tunnels' ends Close frames, and does not wait for ends that accept nothing:
// wait does. When the tunnels are cut, wait returns at once.
func closeAll(tunnels []*Tunnel, code int) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() {
		places := make(chan struct{}, maxClosing)
		for _, t := range tunnels {
			places <- struct{}{}
			running.Go(func() {
				t.requestClose(code, "")
				<-places
			})
		}
	})
	return running.Wait
}
