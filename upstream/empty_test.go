package upstream_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// refusalOf returns why g has no target for a request.
func refusalOf(t *testing.T, g *upstream.Group) *culvert.Error {
	t.Helper()
	lease, err := g.Pick(t.Context(), request())
	var e *culvert.Error
	if !errors.As(err, &e) {
		lease.Done(upstream.Outcome{})
		t.Fatalf("%v, want a refusal", err)
	}
	return e
}

// A group may be empty, with every Balance and with checks, before it has targets and behind.
func TestEmptyGroup(t *testing.T) {
	for name, balance := range map[string]upstream.Balance{
		"round robin": upstream.RoundRobin(), "random": upstream.RandomTwo(), "least": upstream.LeastConn(), "first": upstream.First(),
		"hash": upstream.IPHash(), "sticky": upstream.Sticky(upstream.StickyOptions{}),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, upstream.Options{Name: "app", Balance: balance, Check: &upstream.Check{}, Queue: 1, MaxEjected: 0.5, PanicThreshold: 0.5,
				RetryAfter: 7 * time.Second})
			for range 2 {
				e := refusalOf(t, g)
				if e.Kind != culvert.NoTarget || e.Status() != 503 || e.RetryAfter != 7*time.Second || e.Target != "app" || e.Err.Error() != "the group has no targets" {
					t.Errorf("%v of kind %v, Retry-After %v", e, e.Kind, e.RetryAfter)
				}
				if err := g.Set(addrs("a")...); err != nil {
					t.Fatal(err)
				}
				lease, err := g.Pick(t.Context(), request())
				if err != nil {
					t.Fatal(err)
				}
				if err := g.Set(); err != nil {
					t.Fatal(err)
				}
				lease.Done(upstream.Outcome{Err: errors.New("no")}) // of a target that has gone
			}
			for range g.Targets() {
				t.Error("an empty group has a target")
			}
		})
	}
}

// An empty list of a Source ends the wait for the first one, and takes targets away.
func TestEmptyListOfASource(t *testing.T) {
	source := make(lists)
	g := newGroup(t, upstream.Options{Name: "app", Source: source, QueueTimeout: -1})
	got := make(chan error, 1)
	go func() {
		_, err := g.Pick(t.Context(), request())
		got <- err
	}()
	source <- nil
	if err := wiretest.Await(t, got, "the refusal"); fmt.Sprint(err) != "no target available: app: the group has no targets" {
		t.Errorf("%v", err)
	}
	source <- addrs("a")
	source <- nil
	source <- nil // when the list before is the group's
	if e := refusalOf(t, g); e.Kind != culvert.NoTarget || e.RetryAfter != time.Second {
		t.Errorf("%v, Retry-After %v", e, e.RetryAfter)
	}
}
