package upstream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// probed is a Transport that responds to checks, and records them.
type probed struct {
	mu       sync.Mutex
	status   map[string]int // by host; 0 is an error
	requests []string
}

func (p *probed) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	host, _, _ := strings.Cut(r.URL.Host, ":")
	p.requests = append(p.requests, r.Method+" "+r.URL.String()+" "+r.Host+" "+r.Header.Get("X-Check"))
	if p.status[host] == 0 {
		return nil, errors.New("refused")
	}
	return &http.Response{StatusCode: p.status[host], Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

func (p *probed) set(host string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status[host] = status
}

// Fall bad checks in a row make a target unhealthy, Rise good ones make it healthy again.
func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 200, "b": 204}}
		var changes []string
		p := newPicks(t, upstream.Options{Transport: probes, Check: &upstream.Check{
			Path: "/healthz?deep=1", Host: "health.example", Header: http.Header{"X-Check": {"yes"}}, Jitter: -1,
			OnChange: func(addr string, healthy bool, err error) {
				changes = append(changes, fmt.Sprint(addr, " ", healthy, " ", err))
			},
		}}, addrs("a b")...)
		step := func(want string) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			p.want(want)
		}
		synctest.Wait() // the first checks
		if got := probes.requests[0]; got != "GET http://"+got[11:12]+":1/healthz?deep=1 health.example yes" {
			t.Errorf("the first check is %q", got)
		}
		p.want("a b a b")
		probes.set("a", 500)
		step("a b a b")
		step("a b a b")
		step("b b b b")
		probes.set("a", 0)
		step("b b b b")
		probes.set("a", 302)
		step("b b b b")
		step("a b a b")
		if want := "[a:1 false status 500 a:1 true <nil>]"; fmt.Sprint(changes) != want {
			t.Errorf("OnChange was called with %v, want %s", changes, want)
		}
	})
}

// A check or an attempt that fails since this host lacks a resource does not count for the target.
func TestNothingToCheckWith(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.EADDRNOTAVAIL} {
		for _, path := range []string{"", "/"} {
			synctest.Test(t, func(t *testing.T) {
				lacking := &upstream.DialError{Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", errno)}}
				p := newPicks(t, upstream.Options{
					Check:       &upstream.Check{Path: path, Jitter: -1, Fall: 2},
					DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, lacking },
				}, addrs("a b")...)
				time.Sleep(time.Minute)
				p.want("a b a b")
				for range 3 {
					lease, err := p.g.Pick(t.Context(), request())
					if err != nil {
						t.Fatal(err)
					}
					lease.Done(upstream.Outcome{Err: lacking})
				}
				for s := range p.g.Targets() {
					if s.Fails != 0 {
						t.Errorf("%v: %d failures", errno, s.Fails)
					}
				}
			})
		}
	}
}

// The targets of the current set are checked, until the group is closed.
func TestChecksFollowTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 200, "b": 200, "c": 200}}
		p := newPicks(t, upstream.Options{Transport: probes, Check: &upstream.Check{Path: "/", Jitter: -1}}, addrs("a b")...)
		round := func(want string, change func() error) {
			t.Helper()
			time.Sleep(time.Second) // between two checks
			probes.forget()         // before the change, since a new target is checked at once
			if err := change(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if got := fmt.Sprint(probes.hosts()); got != want {
				t.Errorf("checked %s, want %s", got, want)
			}
		}
		round("map[a:true b:true]", func() error { return nil })
		round("map[b:true c:true]", func() error { return p.g.Set(addrs("b c")...) })
		round("map[]", p.g.Close)
	})
}

func (p *probed) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

func (p *probed) hosts() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, line := range p.requests {
		seen[strings.TrimPrefix(strings.Fields(line)[1], "http://")[:1]] = true
	}
	return seen
}

// A target that never responds to a check is unhealthy after Fall timeouts.
func TestCheckTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		p := newPicks(t, upstream.Options{Transport: hang, Check: &upstream.Check{Path: "/", Interval: time.Second, Jitter: -1, Fall: 1, Timeout: 3 * time.Second}}, addrs("a b")...)
		time.Sleep(3*time.Second - 1)
		p.want("a b")
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		p.want("- -")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Without a path a check only makes a connection.
func TestCheckByConnection(t *testing.T) {
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan string, 8)
	o := upstream.Options{Check: &upstream.Check{Interval: 5 * time.Millisecond, OnChange: func(addr string, healthy bool, err error) {
		changed <- fmt.Sprint(healthy, err != nil)
	}}}
	newGroup(t, o, upstream.Target{Addr: l.Addr().String()}, upstream.Target{Addr: "a:1", Down: true})
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	l.Close()
	if got := wiretest.Await(t, changed, "the target to become unhealthy"); got != "false true" {
		t.Errorf("OnChange was called with %s", got)
	}
	if l, err = net.Listen("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := wiretest.Await(t, changed, "the target to become healthy"); got != "true false" {
		t.Errorf("OnChange was called with %s", got)
	}
}

// Checks of a real server run over the group's transport, on a connection that is kept.
func TestCheckOfServer(t *testing.T) {
	leaktest.Check(t)
	var healthy atomic.Bool
	healthy.Store(true)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !healthy.Load() {
			w.WriteHeader(503)
		}
	}))
	defer s.Close()
	changed := make(chan string, 8)
	g := newGroup(t, upstream.Options{Name: "app", Check: &upstream.Check{Path: "/healthz", Interval: 2 * time.Millisecond, OnChange: func(_ string, healthy bool, err error) {
		changed <- fmt.Sprint(healthy, " ", err)
	}}}, upstream.Target{Addr: s.Listener.Addr().String()})
	healthy.Store(false)
	if got := wiretest.Await(t, changed, "the target to become unhealthy"); got != "false status 503" {
		t.Errorf("OnChange was called with %q", got)
	}
	_, err := g.Pick(t.Context(), request())
	refused(t, err, culvert.NoTarget, "no healthy target is left")
	healthy.Store(true)
	if got := wiretest.Await(t, changed, "the target to become healthy"); got != "true <nil>" {
		t.Errorf("OnChange was called with %q", got)
	}
	l, err := g.Pick(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	l.Done(upstream.Outcome{Status: 200})
}

// Checks of targets that speak HTTP/1.1 use the connections of requests, and requests those of checks.
func TestChecksShareConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		var requests, agents []string
		var served sync.WaitGroup
		o := upstream.Options{Check: &upstream.Check{Path: "/healthz", Jitter: -1, Interval: 10 * time.Second}}
		o.DialContext = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			near, far := net.Pipe()
			served.Go(func() {
				defer far.Close()
				for in := bufio.NewReader(far); ; {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					requests, agents = append(requests, r.URL.Path), append(agents, r.UserAgent())
					fmt.Fprint(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			return near, nil
		}
		g := newGroup(t, o, upstream.Target{Addr: "a:1"})
		for range 3 {
			time.Sleep(14 * time.Second)
			call := http1.Call{Request: httptest.NewRequest(http.MethodGet, "http://a:1/", nil)}
			call.Request.Body = nil
			if err := call.Prepare(); err != nil {
				t.Fatal(err)
			}
			resp, err := http1.PoolOf(g.Transport()).Do(&call)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
				t.Errorf("body %q, %v", body, err)
			}
			call.Release()
		}
		g.Close()
		served.Wait()
		if want := "/healthz /healthz / /healthz / /healthz /healthz /"; strings.Join(requests, " ") != want || dials.Load() != 1 {
			t.Errorf("%d connections with requests of %v, want one with %s", dials.Load(), requests, want)
		}
		if agents[0] != "Go-http-client/1.1" {
			t.Errorf("User-Agent %q", agents[0])
		}
	})
}

// A check that Close ends has no result, though the header of its response has arrived: Healthy is not called for it.
func TestCloseEndsACheck(t *testing.T) {
	overHTTP := roundTripper(func(r *http.Request) (*http.Response, error) {
		body, silent := io.Pipe()
		context.AfterFunc(r.Context(), func() { silent.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
	})
	dial := func(context.Context, string, string) (net.Conn, error) {
		conn, target := net.Pipe()
		go func() {
			defer target.Close()
			r := bufio.NewReader(target)
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(target, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			_, _ = r.ReadByte() // until it is closed
		}()
		return conn, nil
	}
	for name, o := range map[string]upstream.Options{"own": {DialContext: dial}, "http.Transport": {Transport: overHTTP}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				called := 0
				o.Check = &upstream.Check{Path: "/", Jitter: -1, Timeout: time.Hour, Healthy: func(int) bool { called++; return true }}
				g := newGroup(t, o, addrs("a b")...)
				synctest.Wait() // the body is awaited
				_ = g.Close()
				if called != 0 {
					t.Errorf("Healthy was called %d times", called)
				}
			})
		})
	}
}
