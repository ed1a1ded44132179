package upstream_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

// lines collects the lines that are logged to slog.Default.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) with(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func logs(t *testing.T) *lines {
	l, before := new(lines), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// A panic of a check's function is logged, and the checks continue.
func TestPanicInACheck(t *testing.T) {
	log := logs(t)
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 500, "b": 200}}
		changes := 0
		p := newPicks(t, upstream.Options{Transport: probes, Check: &upstream.Check{
			Path: "/", Jitter: -1, Interval: time.Second, Fall: 1, Rise: 1,
			Healthy: func(status int) bool {
				if status == 418 {
					panic("a bug of Healthy")
				}
				return status == 200
			},
			OnChange: func(string, bool, error) { changes++; panic("a bug of OnChange") },
		}}, addrs("a b")...)
		time.Sleep(500 * time.Millisecond)
		p.want("b b b b")
		probes.set("a", 200)
		time.Sleep(time.Second)
		p.want("a b a b")
		probes.set("a", 418)
		time.Sleep(time.Second)
		p.want("a b a b") // a panic does not count for the target
		synctest.Wait()
		if changes != 2 || log.with("a bug of OnChange") != 2 || log.with("a bug of Healthy") != 1 {
			t.Errorf("%d changes, logged: %q", changes, log.all)
		}
	})
}

// panickySource is a Source whose first two calls panic: one before a first list, one after it.
type panickySource struct{ calls int }

func (s *panickySource) Watch(ctx context.Context, set func(...upstream.Target) error) {
	s.calls++
	switch s.calls {
	case 1:
		panic("a bug")
	case 2:
		_ = set(addrs("a")...)
		panic("a bug")
	}
	_ = set(addrs("b")...)
	<-ctx.Done()
}

// A Source that panics is called again; the group keeps its targets meanwhile.
func TestPanicOfASource(t *testing.T) {
	log := logs(t)
	synctest.Test(t, func(t *testing.T) {
		source := new(panickySource)
		p := newPicks(t, upstream.Options{Source: source, DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, http.ErrServerClosed }})
		p.want("a a")
		time.Sleep(time.Minute)
		p.want("b b")
		synctest.Wait()
		if source.calls != 3 || log.with("a bug") != 2 {
			t.Errorf("%d calls, logged: %q", source.calls, log.all)
		}
	})
}

// A panic of DialContext is passed on to its request, or logged if that has ended.
func TestPanicOfALateDial(t *testing.T) {
	log := logs(t)
	synctest.Test(t, func(t *testing.T) {
		transport, err := upstream.NewTransport(upstream.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(time.Second)
			panic("a bug")
		}})
		if err != nil {
			t.Fatal(err)
		}
		get := func(timeout time.Duration) (panicked any) {
			defer func() { panicked = recover() }()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if err := overPool(transport, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a:1/", nil)); err == nil {
				t.Error("a response")
			}
			return nil
		}
		if v := get(time.Minute); v != "a bug" || log.with("a bug") != 0 {
			t.Errorf("a waiting request: panic %v, logged: %q", v, log.all)
		}
		if v := get(time.Millisecond); v != nil {
			t.Errorf("a request that has ended: panic %v", v)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if log.with("a bug") != 1 || log.with("upstream.Options.DialContext") != 1 {
			t.Errorf("logged: %q", log.all)
		}
	})
}
