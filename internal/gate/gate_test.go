package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/gate"
)

// Drained is closed when Drain begins, and not before.
func TestDrained(t *testing.T) {
	for _, before := range []bool{true, false} {
		var g gate.Gate
		if before {
			select {
			case <-g.Drained():
				t.Error("closed before Drain")
			default:
			}
		}
		g.Enter()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			if err := g.Drain(ended); err == nil {
				t.Error("drained with one inside")
			}
			<-g.Drained()
		}
	}
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		if n, ok := g.Enter(); n != 1 || !ok {
			t.Fatalf("entered %d %v", n, ok)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Drain(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("drained with one inside: %v", err)
		}
		if n, ok := g.Enter(); n != 0 || ok || g.Running() != 1 {
			t.Errorf("entered a closed gate: %d %v", n, ok)
		}
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if err := g.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		g.Leave()
		waiting.Wait()
	})
}

// Enter fails once Drain has returned.
func TestDrainUnderLoad(t *testing.T) {
	for range 200 {
		var g gate.Gate
		var inside, users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for {
					if _, ok := g.Enter(); !ok {
						return
					}
					inside.Go(g.Leave)
				}
			})
		}
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		users.Wait()
		inside.Wait()
		if n := g.Running(); n != 0 {
			t.Fatalf("%d are inside", n)
		}
	}
}
