package http1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/leaktest"
)

// targets dials pipes and keeps their other ends.
type targets struct {
	mu   sync.Mutex
	ends []net.Conn
	slow time.Duration
	fail error
}

func (d *targets) dial(ctx context.Context, _ http1.Addr) (net.Conn, error) {
	select {
	case <-time.After(d.slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, d.fail
	}
	near, far := net.Pipe()
	d.ends = append(d.ends, far)
	return near, nil
}

func (d *targets) dialled() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ends)
}

func options(d *targets) http1.Options {
	return http1.Options{Dial: d.dial, MaxIdle: 2, IdleTimeout: time.Minute, MaxHeader: 1 << 10}
}

func get(t *testing.T, p *http1.Pool) *http1.Conn {
	t.Helper()
	c, err := p.Get(t.Context(), http1.Addr{Name: "a:1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The connection that was used last is used first; no more than MaxIdle are kept; those that
// have been idle for too long end.
func TestPoolIsAStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &targets{}
		p := http1.NewPool(options(d))
		a, b, c := get(t, p), get(t, p), get(t, p)
		a.Keep()
		b.Keep()
		c.Keep() // is one too many
		if n, err := d.ends[2].Read(make([]byte, 1)); n > 0 || err != io.EOF {
			t.Errorf("the third connection is open: %v", err)
		}
		if got := get(t, p); got != b || !got.Reused {
			t.Error("not the connection that was used last")
		}
		b.Keep()
		time.Sleep(50 * time.Second)
		get(t, p).Keep() // b is idle anew
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if _, err := d.ends[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the first connection was idle for too long: %v", err)
		}
		if got := get(t, p); got != b {
			t.Error("the second connection was not idle for too long")
		}
		b.Keep()
		p.CloseIdle()
		if got := get(t, p); got == b {
			t.Error("a closed connection was used")
		}
		last := get(t, p)
		p.CloseIdle()
		last.Keep()
		if _, err := d.ends[len(d.ends)-1].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection is idle in a pool that was closed: %v", err)
		}
	})
}

// An exchange that dials takes a connection that becomes idle before.
func TestPoolRacesTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &targets{}
		p := http1.NewPool(options(d))
		a := get(t, p)
		d.slow = time.Minute
		go func() {
			time.Sleep(time.Second)
			a.Keep()
		}()
		start := time.Now()
		if got := get(t, p); got != a || time.Since(start) != time.Second {
			t.Errorf("another connection after %v", time.Since(start))
		}
		time.Sleep(2 * time.Minute)
		if d.dialled() != 2 {
			t.Errorf("%d connections were dialled", d.dialled())
		}
		if got := get(t, p); got == a || got.Reused {
			t.Error("the connection that was dialled in vain is not idle")
		}
		p.CloseIdle()
	})
}

// A dial that fails is the failure of the exchange that dialled, and leaves no other one without a dial.
func TestPoolGivesADialToWhoDialled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wanted := errors.New("no target there")
		failing := &targets{slow: 2 * time.Second, fail: wanted}
		good := &targets{slow: time.Second}
		o := options(good)
		dials := make(chan *targets, 2)
		dials <- failing
		dials <- good
		o.Dial = func(ctx context.Context, addr http1.Addr) (net.Conn, error) { return (<-dials).dial(ctx, addr) }
		p := http1.NewPool(o)
		first := make(chan error)
		go func() {
			_, err := p.Get(t.Context(), http1.Addr{Name: "a:1"}, false)
			first <- err
		}()
		synctest.Wait()
		start := time.Now()
		get(t, p)
		if took := time.Since(start); took != time.Second {
			t.Errorf("the second has its connection after %v", took)
		}
		if err := <-first; err != wanted {
			t.Errorf("the first: %v", err)
		}
	})
}

func TestPoolFails(t *testing.T) {
	leaktest.Check(t)
	wanted := errors.New("no target there")
	p := http1.NewPool(options(&targets{fail: wanted}))
	if _, err := p.Get(t.Context(), http1.Addr{Name: "a:1"}, false); err != wanted {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Get(ctx, http1.Addr{Name: "a:1"}, false); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	if n := p.Waiting(); n != 0 {
		t.Errorf("%d exchanges wait after they have ended", n)
	}
}

// The last exchange of a connection knows that it is, and the connection ends with it.
func TestLastExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &targets{}
		o := options(d)
		o.MaxRequests, o.MaxAge = 2, time.Hour
		p := http1.NewPool(o)
		for i, want := range []bool{false, true, false} {
			c := get(t, p)
			if c.Last != want {
				t.Errorf("exchange %d: last %v", i, c.Last)
			}
			c.Keep()
		}
		time.Sleep(30 * time.Second)
		o.MaxRequests, o.MaxAge = 0, time.Minute
		p = http1.NewPool(o)
		get(t, p).Keep()
		time.Sleep(50 * time.Second)
		get(t, p).Keep()
		time.Sleep(20 * time.Second)
		if c := get(t, p); !c.Last {
			t.Error("a connection of 70 seconds is not at its last exchange")
		}
		p.CloseIdle()
	})
}

// What an idle connection receives, be it its end or a response to no request, belongs to no
// exchange.
func TestPeek(t *testing.T) {
	leaktest.Check(t)
	for name, says := range map[string]func(net.Conn){
		"its end":      func(c net.Conn) { c.Close() },
		"half its end": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"a reset":      func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
		"bytes":        func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			p := http1.NewPool(http1.Options{MaxIdle: 1, IdleTimeout: time.Minute, Dial: func(context.Context, http1.Addr) (net.Conn, error) {
				return net.Dial("tcp", l.Addr().String())
			}})
			defer p.CloseIdle()
			c := get(t, p)
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			c.Keep()
			if got := get(t, p); got != c {
				t.Fatal("a quiet connection was not used")
			}
			c.Keep()
			says(far)
			for again := c; again == c; { // until it has arrived
				if again = get(t, p); again == c {
					again.Keep()
					continue
				}
				if again.Reused {
					t.Error("the connection is no new one")
				}
				again.Close()
			}
		})
	}
}

// A deadline that is over is the last exchange's: a connection that was idle beyond it is as
// good as before.
func TestPoolKeepsBeyondADeadline(t *testing.T) {
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := http1.NewPool(http1.Options{
		Dial:    func(context.Context, http1.Addr) (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) },
		MaxIdle: 2, IdleTimeout: time.Minute, MaxHeader: 1 << 10,
	})
	defer p.CloseIdle()
	c := get(t, p)
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	c.SetReadTimeout(time.Millisecond)
	if _, err := c.R.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the deadline is not over: %v", err)
	}
	c.Keep()
	if again := get(t, p); again != c {
		t.Error("another connection was dialled")
	}
	c.SetReadTimeout(time.Minute)
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if b, err := c.R.ReadByte(); b != 'x' || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	c.Close()
}

// What was sent over a kept connection is sent again over one that no exchange has used before: another
// kept one may have been closed as well.
func TestPoolDialsAFreshOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &targets{}
		p := http1.NewPool(options(d))
		kept := get(t, p)
		d.slow = time.Minute
		go func() {
			time.Sleep(time.Second)
			kept.Keep()
		}()
		c, err := p.Get(t.Context(), http1.Addr{Name: "a:1"}, true)
		if err != nil || c == kept || c.Reused {
			t.Errorf("the kept one: %v, used before: %v, %v", c == kept, c.Reused, err)
		}
		if get(t, p) != kept {
			t.Error("the kept one is not idle")
		}
		p.CloseIdle()
	})
}

// MaxIdleTotal bounds the idle connections of all targets together: the one that was idle longest ends, regardless of its target.
func TestTargetsShareMaxIdleTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(&targets{})
		o.MaxIdleTotal = 3
		p := http1.NewPool(o)
		defer p.CloseIdle()
		take := func(name, preface string) *http1.Conn {
			c, err := p.Get(t.Context(), http1.Addr{Name: name, Preface: preface}, false)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		for _, name := range []string{"a:1", "b:1", "c:1", "a:1", "d:1", "e:1"} { // a:1 is used again, so b:1 and c:1 end
			take(name, "").Keep()
			time.Sleep(time.Second)
		}
		take("f:1", "x").Keep() // and a:1
		for name, kept := range map[string]bool{"a:1": false, "b:1": false, "c:1": false, "d:1": true, "e:1": true} {
			c := take(name, "")
			if c.Reused != kept {
				t.Errorf("%s is kept: %v, want %v", name, c.Reused, kept)
			}
			c.Close()
		}
		if c := take("f:1", "x"); !c.Reused {
			t.Error("the last one is not kept")
		} else {
			c.Close()
		}
		for i := range 8 { // those with a preface end like the others, and are forgotten
			take(fmt.Sprint("g:", i), fmt.Sprint(i)).Keep()
			time.Sleep(time.Second)
		}
		if n := http1.IdleAddrs(p); n > 3+5 { // the others are remembered until a sweep
			t.Errorf("%d addresses are remembered of three idle connections", n)
		}
	})
}
