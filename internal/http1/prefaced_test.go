package http1_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// A connection is used for requests of its own preface only, also where another exchange waits for one to its target.
func TestPrefacesShareNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &targets{}
		p := http1.NewPool(options(d))
		take := func(preface string) *http1.Conn {
			c, err := p.Get(t.Context(), http1.Addr{Name: "a:1", Preface: preface}, false)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		a := take("a")
		d.slow = time.Second
		got := make(chan *http1.Conn)
		for _, preface := range []string{"b", "a"} {
			go func() { got <- take(preface) }()
		}
		synctest.Wait()
		a.Keep()
		if c := <-got; c != a {
			t.Error("the connection is not given to the exchange that waits for one of its preface")
		}
		b := <-got
		if b == a || b.Reused {
			t.Error("a connection is used for another preface")
		}
		a.Keep()
		b.Keep()
		time.Sleep(time.Second) // until the dial that was not needed any more has ended
		p.CloseIdle()
	})
}

// MaxIdle bounds the idle connections of a target, of all prefaces together: the one that was idle longest ends.
func TestPrefacesShareMaxIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &targets{}
		p := http1.NewPool(options(d))
		take := func(name, preface string) *http1.Conn {
			c, err := p.Get(t.Context(), http1.Addr{Name: name, Preface: preface}, false)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		other := take("b:1", "0")
		other.Keep()
		for round := range 3 {
			var conns []*http1.Conn
			for i := range 4 {
				conns = append(conns, take("a:1", fmt.Sprint(i)))
			}
			for _, c := range conns {
				c.Keep()
				time.Sleep(time.Second)
			}
			for i := 3; i >= 0; i-- {
				c := take("a:1", fmt.Sprint(i))
				if kept := i >= 2; c.Reused != kept {
					t.Errorf("round %d: the connection of client %d is kept: %v, want %v", round, i, c.Reused, kept)
				}
				c.Close()
			}
		}
		if n := http1.IdleAddrs(p); n != 1 {
			t.Errorf("%d addresses are remembered of one idle connection", n)
		}
		for i := range 2 {
			take("a:1", fmt.Sprint(i)).Keep()
		}
		if c := take("b:1", "0"); !c.Reused {
			t.Error("another target's connection is closed")
		}
		time.Sleep(2 * time.Minute) // both have been idle for too long
		for i := range 2 {
			c := take("a:1", fmt.Sprint(i))
			if c.Reused {
				t.Error("a connection is used that has been idle for too long")
			}
			c.Keep()
		}
		p.CloseIdle()
		if take("a:1", "0").Reused {
			t.Error("CloseIdle keeps a connection")
		}
	})
}

// A connection that has ended otherwise does not count for MaxIdle any more: it was idle for too long, or over MaxIdleTotal.
func TestPrefacedThatEnded(t *testing.T) {
	for _, total := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			o := options(&targets{})
			o.MaxIdleTotal = total
			p := http1.NewPool(o)
			defer p.CloseIdle()
			for i := range 6 {
				c, err := p.Get(t.Context(), http1.Addr{Name: "a:1", Preface: fmt.Sprint(i)}, false)
				if err != nil {
					t.Fatal(err)
				}
				c.Keep()
				if total == 0 && i%2 == 1 {
					time.Sleep(3 * time.Minute) // until they are swept
				}
			}
			if n := http1.IdleAddrs(p); n != total { // without a bound the last ones are swept, too
				t.Errorf("MaxIdleTotal %d: %d idle connections", total, n)
			}
		})
	}
}
