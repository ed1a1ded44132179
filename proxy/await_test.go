package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// restarting is a target that refuses connections until its address is bound again, after a time.
type restarting struct {
	bound time.Time
	dials atomic.Int32
	serve func(net.Conn)
}

func (r *restarting) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if r.dials.Add(1); time.Now().Before(r.bound) {
		return nil, errors.New("connection refused")
	}
	return pipeTo(r.serve)(ctx, network, addr)
}

// echoBody responds to one request with its method and body.
func echoBody(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	body, _ := io.ReadAll(r.Body)
	text := r.Method + " " + string(body)
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// TestWaitForARestart: with Retry.Wait, the restart of the only target fails no request, not a POST either: none was sent.
func TestWaitForARestart(t *testing.T) { onPaths(t, testWaitForARestart) }
func testWaitForARestart(t *testing.T, via path) {
	for name, health := range map[string]upstream.Target{"kept": {}, "ejected": {MaxFails: 1, FailTimeout: 700 * time.Millisecond}} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leaktest.Check(t)
					target := &restarting{bound: time.Now().Add(3 * time.Second), serve: echoBody}
					health.Addr = "192.0.2.1:80"
					group := groupOf(t, upstream.Options{DialContext: target.dial, MaxEjected: 1}, health)
					p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Wait: 10 * time.Second}})
					start, w := time.Now(), httptest.NewRecorder()
					p.ServeHTTP(w, httptest.NewRequest(method, "http://gateway.test/", strings.NewReader("hello")))
					if w.Code != 200 || w.Body.String() != method+" hello" {
						t.Errorf("%d %q", w.Code, w.Body)
					}
					if took := time.Since(start); took < 3*time.Second || took > 4*time.Second {
						t.Errorf("the response came after %v", took)
					}
					if n := target.dials.Load(); n > 12 { // 50, 100, 200, 400, 800 ms and a second, or half of each
						t.Errorf("%d attempts", n)
					}
					group.Close()
				})
			})
		}
	}
}

// TestWaitEnds: a wait ends after Wait, or before that with Timeout, Tries or Budget, or when the client leaves, which
// has ended the request then. Otherwise that fails as it would have without a wait.
func TestWaitEnds(t *testing.T) { onPaths(t, testWaitEnds) }
func testWaitEnds(t *testing.T, via path) {
	budget, err := proxy.NewRetryBudget(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		retry   proxy.Retry
		leaves  time.Duration
		atLeast time.Duration
		atMost  time.Duration
		kind    culvert.ErrorKind
	}{
		"none":    {proxy.Retry{}, time.Hour, 0, 0, culvert.DialFailed},
		"Wait":    {proxy.Retry{Wait: 10 * time.Second}, time.Hour, 10 * time.Second, 10 * time.Second, culvert.DialFailed},
		"Timeout": {proxy.Retry{Wait: 10 * time.Second, Timeout: 4 * time.Second}, time.Hour, 4 * time.Second, 4 * time.Second, culvert.DialFailed},
		"Tries":   {proxy.Retry{Wait: 10 * time.Second, Tries: 3}, time.Hour, 75 * time.Millisecond, 150 * time.Millisecond, culvert.DialFailed},
		"Budget":  {proxy.Retry{Wait: 10 * time.Second, Budget: budget}, time.Hour, 0, 9 * time.Second, culvert.DialFailed},
		"client":  {proxy.Retry{Wait: 10 * time.Second}, 5 * time.Second, 5 * time.Second, 5 * time.Second, culvert.ClientGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				target := &restarting{bound: time.Now().Add(time.Hour)}
				group := groupOf(t, upstream.Options{DialContext: target.dial}, upstream.Target{Addr: "192.0.2.1:80"})
				var failed *culvert.Error
				p := newProxy(t, via, proxy.Options{Upstream: group, Retry: test.retry, OnError: func(_ *http.Request, e *culvert.Error) { failed = e }})
				ctx, cancel := context.WithTimeoutCause(t.Context(), test.leaves, context.Canceled)
				defer cancel()
				start := time.Now()
				func() {
					defer func() { _ = recover() }() // http.ErrAbortHandler, where the client has left
					p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://gateway.test/", nil).WithContext(ctx))
				}()
				if took := time.Since(start); failed == nil || failed.Kind != test.kind || took < test.atLeast || took > test.atMost {
					t.Errorf("%v after %v", failed, took)
				}
				if n := group.InFlight(); n != 0 {
					t.Errorf("%d in flight", n)
				}
				group.Close()
			})
		})
	}
}

// TestDrainEndsWaits: a request that waits for a target does not hold Drain up.
func TestDrainEndsWaits(t *testing.T) { onPaths(t, testDrainEndsWaits) }
func testDrainEndsWaits(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		down := upstream.Target{Addr: "192.0.2.1:80", Down: true}
		group := groupOf(t, upstream.Options{}, down)
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Wait: time.Hour}})
		done := make(chan int)
		go func() {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
			done <- w.Code
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		start := time.Now()
		drained := make(chan error)
		go func() { drained <- p.Drain(t.Context()) }()
		if code := <-done; code != 503 {
			t.Errorf("status %d", code)
		}
		if err := <-drained; err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		group.Close()
	})
}

// TestWaitWithoutATarget: a request for a group whose targets are all down waits until one is there. If its client leaves
// before that, it is the client that has ended the request.
func TestWaitWithoutATarget(t *testing.T) { onPaths(t, testWaitWithoutATarget) }
func testWaitWithoutATarget(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		target := &restarting{serve: echoBody}
		down := upstream.Target{Addr: "192.0.2.1:80", Down: true}
		group := groupOf(t, upstream.Options{DialContext: target.dial}, down)
		var kind atomic.Pointer[culvert.Error]
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Wait: 10 * time.Second},
			OnError: func(_ *http.Request, e *culvert.Error) { kind.Store(e) }})
		get := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			defer func() { _ = recover() }() // http.ErrAbortHandler, where the client has left
			p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil).WithContext(ctx))
			return w.Code
		}
		leaves, cancel := context.WithTimeoutCause(t.Context(), time.Second, context.Canceled)
		defer cancel()
		if get(leaves); kind.Load() == nil || kind.Load().Kind != culvert.ClientGone {
			t.Errorf("its client has left, and the failure is %v", kind.Load())
		}
		if code := get(t.Context()); code != 503 || kind.Load().Kind != culvert.NoTarget {
			t.Errorf("without a target %d, %v", code, kind.Load())
		}
		time.AfterFunc(5*time.Second, func() { _ = group.Set(upstream.Target{Addr: "192.0.2.1:80"}) })
		if code := get(t.Context()); code != 200 {
			t.Errorf("with a target after 5 seconds %d", code)
		}
		group.Close()
	})
}

// TestNoWaitAfterSending: a POST that its only target has read is not sent again, however long it might wait.
func TestNoWaitAfterSending(t *testing.T) { onPaths(t, testNoWaitAfterSending) }
func testNoWaitAfterSending(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		target := &restarting{serve: func(c net.Conn) {
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.ReadAll(r.Body)
			}
		}}
		group := groupOf(t, upstream.Options{DialContext: target.dial}, upstream.Target{Addr: "192.0.2.1:80"})
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Wait: 10 * time.Second, Errors: true}})
		start, w := time.Now(), httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("POST", "http://gateway.test/", strings.NewReader("order")))
		if took := time.Since(start); w.Code != 502 || target.dials.Load() != 1 || took > 0 {
			t.Errorf("%d after %v and %d attempts", w.Code, took, target.dials.Load())
		}
		group.Close()
	})
}

// TestWaitInTheQueue: a request that waits for a target waits no longer where the group's queue would hold it.
func TestWaitInTheQueue(t *testing.T) { onPaths(t, testWaitInTheQueue) }
func testWaitInTheQueue(t *testing.T, via path) {
	synctest.Test(t, func(t *testing.T) {
		leaktest.Check(t)
		target := &restarting{bound: time.Now().Add(time.Millisecond), serve: func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = c.Read(make([]byte, 1)) // no response
		}}
		group := groupOf(t, upstream.Options{DialContext: target.dial, Queue: 1}, upstream.Target{Addr: "192.0.2.1:80", MaxConns: 1})
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Wait: time.Second}})
		leaves, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, context.Canceled)
		defer cancel()
		ended := make(chan struct{})
		time.AfterFunc(2*time.Millisecond, func() {
			defer close(ended)
			defer func() { _ = recover() }() // http.ErrAbortHandler
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://gateway.test/", nil).WithContext(leaves))
		})
		start, w := time.Now(), httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", "http://gateway.test/", nil))
		if took := time.Since(start); w.Code != 502 || took != time.Second {
			t.Errorf("%d after %v", w.Code, took)
		}
		<-ended
		group.Close()
	})
}
