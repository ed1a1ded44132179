package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// The context of a request ends when the client leaves, in whichever way a handler waits for that.
func TestClientLeaves(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context){
		"Done": func(ctx context.Context) { <-ctx.Done() },
		"AfterFunc": func(ctx context.Context) {
			called := make(chan bool)
			context.AfterFunc(ctx, func() { close(called) })
			<-called
		},
		"WithCancel": func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			<-ctx.Done()
		},
		"Err": func(ctx context.Context) {
			for ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		},
	} {
		for _, secure := range []bool{false, true} {
			for _, request := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"} {
				t.Run(name, func(t *testing.T) {
					began, left := make(chan bool, 1), make(chan error, 1)
					s := handler(func(_ http.ResponseWriter, r *http.Request) {
						began <- true
						if r.ContentLength > 0 {
							_, _ = io.ReadAll(r.Body)
						}
						wait(r.Context())
						left <- r.Context().Err()
					})
					p := dial(t, s, secure)
					p.Send(request)
					wiretest.Await(t, began, "request")
					p.Close()
					if err := wiretest.Await(t, left, "end of the context"); err != context.Canceled {
						t.Error(err)
					}
				})
			}
		}
	}
}

// A client that leaves within its body ends the context of the handler that reads that. A malformed body does not.
func TestClientLeavesWithinItsBody(t *testing.T) {
	for body, want := range map[string]error{"Content-Length: 5\r\n\r\nhel": context.Canceled, "Transfer-Encoding: chunked\r\n\r\n5\r\n": context.Canceled,
		"Transfer-Encoding: chunked\r\n\r\nmalformed\r\n": nil} {
		ended := make(chan error, 1)
		p := wiretest.Dial(t, start(t, handler(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				t.Errorf("%q: no error", body)
			}
			ended <- r.Context().Err()
		})))
		p.Send("POST / HTTP/1.1\r\nHost: a\r\n" + body)
		if want != nil {
			p.End()
		}
		if err := wiretest.Await(t, ended, "end of the handler"); err != want {
			t.Errorf("%q: %v, want %v", body, err, want)
		}
	}
}

// The watch of the client takes a byte of the next request, which is not lost, nor where the connection is hijacked.
func TestWatchLosesNothing(t *testing.T) {
	for _, secure := range []bool{false, true} {
		second := make(chan bool, 10)
		s := handler(func(w http.ResponseWriter, r *http.Request) {
			_ = r.Context().Done()
			switch r.URL.Path {
			case "/wait":
				<-second
			case "/take":
				<-second
				conn, buf, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				b := make([]byte, 5)
				_, _ = io.ReadFull(buf, b)
				_, _ = conn.Write(b)
			}
		})
		p := dial(t, s, secure)
		for range 20 {
			p.Send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
			p.Send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
			second <- true
			p.Status(http.StatusOK)
			p.Status(http.StatusOK)
		}
		p.Send("GET /take HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Send("hello")
		second <- true
		p.Receive("hello")
		p.Ended()
	}
}

// The context ends with its handler, and with the server's base context.
func TestContextEnds(t *testing.T) {
	base, cancel := context.WithCancel(t.Context())
	defer cancel()
	contexts := make(chan context.Context, 2)
	called := make(chan bool, 1)
	s := handler(func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		contexts <- ctx
		if strings.HasSuffix(r.URL.Path, "base") {
			cancel()
			<-ctx.Done()
			return
		}
		derived, stop := context.WithTimeout(ctx, time.Hour)
		context.AfterFunc(derived, func() { called <- true })
		_ = stop // the handler forgets it
	})
	s.ConnContext = func(context.Context, net.Conn) context.Context { return base }
	p := wiretest.Dial(t, start(t, s))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	p.Status(http.StatusOK)
	ctx := <-contexts
	wiretest.Await(t, ctx.Done(), "end")
	wiretest.Await(t, called, "call")
	if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled {
		t.Error(ctx.Err())
	}
	if stop := context.AfterFunc(ctx, func() { called <- true }); stop() && len(called) > 0 {
		t.Error("the context has ended twice")
	}
	p.Send("GET /base HTTP/1.1\r\nHost: a\r\n\r\n")
	p.Status(http.StatusOK)
	if ctx := <-contexts; ctx.Err() == nil {
		t.Error("the context has not ended")
	}
}

// endless is a context that does not end. What waits for its end is a goroutine, since it is none of package context's.
type endless struct {
	context.Context
	done chan struct{}
}

func (c endless) Done() <-chan struct{} { return c.done }

// A base context that lives as long as the program holds nothing of requests that have ended.
func TestBaseContextHoldsNothing(t *testing.T) {
	leaktest.Check(t)
	base := endless{t.Context(), make(chan struct{})}
	s := handler(func(_ http.ResponseWriter, r *http.Request) { _ = r.Context().Done() })
	s.ConnContext = func(context.Context, net.Conn) context.Context { return base }
	p := wiretest.Dial(t, start(t, s))
	for range 3 {
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Status(http.StatusOK)
	}
}

// A handler that does not wait for the end of its context has no goroutine that watches the client.
func TestNothingWatches(t *testing.T) {
	watched := make(chan bool, 1)
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		_ = r.Context().Err()
		_ = r.Context().Value(http.ServerContextKey)
		c := w.(*writer).x.c
		c.mu.Lock()
		watched <- c.watch.running && c.peek.Waits()
		c.mu.Unlock()
	})
	p := wiretest.Dial(t, start(t, s))
	p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if wiretest.Await(t, watched, "request") {
		t.Error("the client is watched")
	}
	p.Status(http.StatusOK)
}
