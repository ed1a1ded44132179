package upstream_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
)

// sourceFunc implements Source by a function.
type sourceFunc func(ctx context.Context, set func(...upstream.Target) error)

func (f sourceFunc) Watch(ctx context.Context, set func(...upstream.Target) error) { f(ctx, set) }

// As many requests as documented wait for a Source's first list, and Waiting counts them. The others
// are refused at once.
func TestBoundOfTheWaitForTheFirstList(t *testing.T) {
	for queue, room := range map[int]int{0: 100, 7: 100, 130: 130} {
		synctest.Test(t, func(t *testing.T) {
			p := newPicks(t, upstream.Options{Queue: queue, Source: late(time.Second)})
			var all []<-chan picked
			for range room + 5 {
				all = append(all, p.pickLater(t.Context()))
			}
			if p.g.Waiting() != room || p.g.InFlight() != room {
				t.Errorf("Queue %d: %d wait, %d in flight, want %d", queue, p.g.Waiting(), p.g.InFlight(), room)
			}
			for _, late := range all[room:] {
				if len(late) == 0 {
					t.Fatal("a request beyond the bound waits")
				}
				refused(t, (<-late).err, culvert.Busy, "too many requests wait for the first list of targets")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			for _, early := range all[:room] {
				if got := <-early; got.err != nil || name(got.lease) != "a" {
					t.Fatalf("after the first list: %v", got.err)
				}
			}
			if p.g.Waiting() != 0 {
				t.Errorf("%d wait after the first list", p.g.Waiting())
			}
		})
	}
}

// No request waits for a first list that will not be delivered: the group is closed or drained, or the
// Source has returned.
func TestEndOfTheWaitForTheFirstList(t *testing.T) {
	type ending struct {
		kind  culvert.ErrorKind
		cause string
		do    func(g *upstream.Group, end context.CancelFunc) error
	}
	for name, test := range map[string]ending{
		"Close":   {culvert.NoTarget, "the group is closed", func(g *upstream.Group, _ context.CancelFunc) error { return g.Close() }},
		"Drain":   {culvert.Busy, "draining", func(g *upstream.Group, _ context.CancelFunc) error { return g.Drain(context.Background()) }},
		"returns": {culvert.NoTarget, "the source has ended without a list of targets", func(_ *upstream.Group, end context.CancelFunc) error { end(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				returns, end := context.WithCancel(t.Context())
				defer end()
				p := newPicks(t, upstream.Options{Queue: 3, Source: sourceFunc(func(ctx context.Context, _ func(...upstream.Target) error) {
					select {
					case <-ctx.Done():
					case <-returns.Done():
					}
				})})
				early := p.pickLater(t.Context())
				start := time.Now()
				if err := test.do(p.g, end); err != nil {
					t.Error(err)
				}
				refused(t, (<-early).err, test.kind, test.cause)
				_, err := p.g.Pick(t.Context(), request())
				refused(t, err, test.kind, test.cause)
				if waited := time.Since(start); waited > 0 {
					t.Errorf("waited %v", waited)
				}
				if name != "returns" {
					return
				}
				if err := p.g.Set(addrs("b")...); err != nil { // a list of Set's counts as well
					t.Error(err)
				}
				p.want("b b")
			})
		})
	}
}

// A group keeps its targets when its Source returns, and when it is closed.
func TestSourceReturnsAfterItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Source: sourceFunc(func(_ context.Context, set func(...upstream.Target) error) { _ = set(addrs("a")...) })})
		p.want("a a")
		synctest.Wait()
		p.want("a a")
		if err := p.g.Close(); err != nil {
			t.Error(err)
		}
		p.want("a a")
	})
}
