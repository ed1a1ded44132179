package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// slowly sends the first bytes of s, one in every pace, until the connection is closed or all is sent, and returns how
// long that took.
func (c *client) slowly(s string, pace time.Duration) time.Duration {
	began := time.Now()
	for i := 0; i < len(s) && !c.closed(); i++ {
		_, _ = io.WriteString(c, s[i:i+1])
		time.Sleep(pace)
	}
	return time.Since(began)
}

// A client that sends its header slowly, or nothing, is not waited for longer than ReadHeaderTimeout, or ReadTimeout
// without it.
func TestContractSlowHeader(t *testing.T) {
	long := "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 1000)
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, o := range []*http.Server{
			{ReadHeaderTimeout: 10 * time.Second},
			{ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Hour},
			{ReadTimeout: 10 * time.Second},
		} {
			c, l := k.inBubble(t, o)
			began := time.Now()
			for !c.closed() && time.Since(began) < time.Hour {
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("%v, %v: a silent client was waited for %v", o.ReadHeaderTimeout, o.ReadTimeout, took)
			}
			slow := l.dial(t)
			if took := slow.slowly(long, time.Second); took > 11*time.Second {
				t.Errorf("%v, %v: a slow client was waited for %v", o.ReadHeaderTimeout, o.ReadTimeout, took)
			}
		}
	})
}

// Each request of a connection has the time of ReadHeaderTimeout, from its first byte on.
func TestContractHeaderTimeoutOfNext(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Hour, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(time.Minute)
		})})
		for range 3 {
			c.send(get[:10])
			c.after(9 * time.Second)
			c.send(get[10:])
			c.expect(c.after(2*time.Minute), "HTTP/1.1 200 OK\r\n")
			time.Sleep(30 * time.Minute)
		}
		c.send(get[:10])
		if c.after(11 * time.Second); !c.closed() {
			t.Error("open behind ReadHeaderTimeout")
		}
	})
}

// The timeouts bound a TLS handshake, too.
func TestContractSlowHandshake(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, o := range []*http.Server{{ReadHeaderTimeout: 10 * time.Second}, {ReadTimeout: 10 * time.Second}, {WriteTimeout: 10 * time.Second}} {
			o.TLSConfig = new(tls.Config)
			c, l := k.inBubble(t, o)
			c.after(11 * time.Second)
			begun := l.dial(t)
			begun.send("\x16\x03\x01")
			if begun.after(11 * time.Second); !c.closed() || !begun.closed() {
				t.Errorf("%v, %v, %v: open: %v, %v", o.ReadHeaderTimeout, o.ReadTimeout, o.WriteTimeout, !c.closed(), !begun.closed())
			}
		}
	})
}

// ReadTimeout bounds the time for a whole request, ReadHeaderTimeout that for the header only.
func TestContractReadTimeout(t *testing.T) {
	const header = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
	onServersInBubble(t, func(t *testing.T, k kind) {
		var failure error
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, failure = io.Copy(io.Discard, r.Body) })
		c, _ := k.inBubble(t, &http.Server{ReadTimeout: 10 * time.Second, Handler: h})
		c.send(header + "h")
		if c.after(11 * time.Second); !errors.Is(failure, os.ErrDeadlineExceeded) || !c.closed() {
			t.Errorf("error %v, closed: %v", failure, c.closed())
		}
		_, l := k.inBubble(t, &http.Server{ReadTimeout: 10 * time.Second, Handler: h})
		failure = nil
		if took := l.dial(t).slowly(strings.Replace(header, ": 2", ": 1000", 1)+strings.Repeat("b", 1000), time.Second/20); !errors.Is(failure, os.ErrDeadlineExceeded) || took > 12*time.Second {
			t.Errorf("a slow body: error %v behind %v", failure, took)
		}
		failure = nil
		c, _ = k.inBubble(t, &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: h})
		c.send(header + "h")
		c.after(time.Hour)
		c.expect(c.send("i"), "HTTP/1.1 200 OK\r\n")
		if failure != nil {
			t.Error(failure)
		}
	})
}

// A handler may run longer than ReadTimeout, and its context lives.
func TestContractReadTimeoutAndHandler(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{ReadTimeout: 10 * time.Second, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Second,
			Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				select {
				case <-r.Context().Done():
					t.Error("the context has ended")
				case <-time.After(time.Minute):
				}
			})})
		for range 2 {
			c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
			c.expect(c.after(time.Minute), "HTTP/1.1 200 OK\r\n")
		}
	})
}

// WriteTimeout bounds the time for a response, from the end of the request's header on.
func TestContractWriteTimeout(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		var failure error
		k.serve(t, &http.Server{WriteTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for failure == nil {
				_, failure = w.Write(make([]byte, 10_000))
			}
		})}, l)
		c := l.dialSilent(t)
		_, _ = io.WriteString(c, get)
		time.Sleep(11 * time.Second)
		if synctest.Wait(); !errors.Is(failure, os.ErrDeadlineExceeded) {
			t.Errorf("error %v", failure)
		}
	})
}

// Each response has the time of WriteTimeout.
func TestContractWriteTimeoutOfNext(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{WriteTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(9 * time.Second)
		})})
		for range 3 {
			c.send(get)
			c.expect(c.after(9*time.Second), "HTTP/1.1 200 OK\r\n")
			c.after(time.Minute)
		}
	})
}

// A client that reads nothing is not served request after request.
func TestContractUnreadResponses(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		var served atomic.Int32
		k.serve(t, &http.Server{WriteTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			_, _ = w.Write(make([]byte, 10_000))
		})}, l)
		c := l.dialSilent(t)
		go func() { _, _ = io.WriteString(c, strings.Repeat(get, 10_000)) }()
		time.Sleep(time.Hour)
		if n := served.Load(); n == 0 || n > 20 {
			t.Errorf("%d requests were served", n)
		}
		c.Close()
	})
}

// A handler that sends interim responses to a client that reads nothing is not held up longer than WriteTimeout.
func TestContractUnreadInterimResponses(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		left := false
		k.serve(t, &http.Server{WriteTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", strings.Repeat("a", 1000))
			for range 1000 {
				w.WriteHeader(http.StatusEarlyHints)
			}
			left = true
		})}, l)
		c := l.dialSilent(t)
		_, _ = io.WriteString(c, get)
		time.Sleep(2 * time.Minute)
		if synctest.Wait(); !left {
			t.Error("the handler is held up")
		}
		if got, err := io.ReadAll(c); err != nil || strings.Contains(string(got), " 200 ") {
			t.Errorf("received %d bytes, %v", len(got), err)
		}
	})
}

// An idle connection is closed behind IdleTimeout, or ReadTimeout without it; never if both are 0.
func TestContractIdleTimeout(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, o := range []*http.Server{{IdleTimeout: 10 * time.Second}, {ReadTimeout: 10 * time.Second}, {IdleTimeout: 10 * time.Second, ReadTimeout: time.Second}, {},
			{IdleTimeout: -1, ReadTimeout: 10 * time.Second}} {
			c, _ := k.inBubble(t, o)
			for range 3 {
				c.send(get)
				if c.after(9 * time.Second); c.closed() {
					t.Errorf("%v, %v: closed early", o.IdleTimeout, o.ReadTimeout)
				}
			}
			never := o.IdleTimeout <= 0 && (o.ReadTimeout == 0 || o.IdleTimeout < 0)
			if c.after(time.Hour); c.closed() == never {
				t.Errorf("%v, %v: closed: %v", o.IdleTimeout, o.ReadTimeout, c.closed())
			}
		}
	})
}

// A handler may bound the wait behind its response, longer or shorter than IdleTimeout.
func TestSetIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &http.Server{IdleTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if d, err := time.ParseDuration(r.Header.Get("X-Idle")); err == nil {
				clientside.SetIdleTimeout(w, d)
			}
		})}
		for _, bound := range []time.Duration{time.Minute, time.Second, 100 * time.Millisecond} {
			c, _ := own.inBubble(t, o)
			c.send("GET / HTTP/1.1\r\nHost: a\r\nX-Idle: " + bound.String() + "\r\n\r\n")
			if c.after(bound - 10*time.Millisecond); c.closed() {
				t.Errorf("%v: closed early", bound)
			}
			c.send(get) // the server's holds again
			if c.after(9 * time.Second); c.closed() {
				t.Errorf("%v: closed early behind the next response", bound)
			}
			c.send("GET / HTTP/1.1\r\nHost: a\r\nX-Idle: " + bound.String() + "\r\n\r\n")
			if c.after(bound + 10*time.Millisecond); !c.closed() {
				t.Errorf("%v: not closed", bound)
			}
		}
	})
}

// A line end behind a POST begins no request (RFC 9112 section 2.2): the connection is idle.
func TestContractLineEndBehindPOST(t *testing.T) {
	const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na"
	ends := map[string]func(c *client, s httpServer) time.Duration{
		"IdleTimeout": func(c *client, _ httpServer) time.Duration { c.after(11 * time.Second); return 0 },
		"Shutdown": func(c *client, s httpServer) time.Duration {
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			if err := s.Shutdown(ctx); err != nil {
				c.t.Errorf("Shutdown: %v", err)
			}
			return time.Since(began)
		},
		"SetKeepAlivesEnabled": func(_ *client, s httpServer) time.Duration { s.SetKeepAlivesEnabled(false); return 0 },
	}
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, end := range ends {
			for _, pieces := range [][]string{{post + "\r\n"}, {post, "\r\n"}, {post, "\r", "\n"}, {post, "\n"}, {post + "\r", "\n"}} {
				for _, watched := range []bool{false, true} {
					l := newMemory()
					s := k.serve(t, &http.Server{IdleTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						if watched {
							_ = r.Context().Done()
							time.Sleep(time.Second)
						}
					})}, l)
					c := l.dial(t)
					received := ""
					for _, piece := range pieces {
						received += c.send(piece)
					}
					c.expect(received+c.after(2*time.Second), "HTTP/1.1 200 ")
					if c.closed() {
						t.Errorf("%s, %q, watched: %v: closed early", name, pieces, watched)
					}
					if took := end(c, s); took > 0 || !c.closed() {
						t.Errorf("%s, %q, watched: %v: closed: %v, behind %v", name, pieces, watched, c.closed(), took)
					}
				}
			}
		}
	})
}

// The default bound of a header section is 1 MiB.
func TestContractDefaultMaxHeaderBytes(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(http.ResponseWriter, *http.Request) {}))
		fit := "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", http.DefaultMaxHeaderBytes-100) + "\r\n\r\n"
		for range 2 {
			if received, kept := exchange(t, addr, fit); len(received) != 1 || !kept {
				t.Errorf("received %q, kept: %v", received, kept)
			}
		}
		large := "GET / HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", http.DefaultMaxHeaderBytes+8<<10) + "\r\n\r\n"
		if received, kept := exchange(t, addr, large); len(received) != 1 || !strings.HasPrefix(received[0], "HTTP/1.1 431 ") || kept {
			t.Errorf("received %q, kept: %v", received, kept)
		}
	})
}

// states records the states of connections.
type states struct {
	mu  sync.Mutex
	all []http.ConnState
}

func (s *states) hook(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, state)
}

func (s *states) want(t testing.TB, what string, want ...http.ConnState) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.all, want) {
		t.Errorf("%s: states %v, want %v", what, s.all, want)
	}
	s.all = nil
}

// ConnState is called with each state of a connection.
func TestContractConnState(t *testing.T) {
	const created, active, idle, hijacked, closed = http.StateNew, http.StateActive, http.StateIdle, http.StateHijacked, http.StateClosed
	onServersInBubble(t, func(t *testing.T, k kind) {
		var s states
		l := newMemory()
		k.serve(t, &http.Server{ConnState: s.hook, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/hijack":
				if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
					conn.Close()
				}
			case "/abort":
				panic(http.ErrAbortHandler)
			}
		})}, l)
		c := l.dial(t)
		s.want(t, "dialled", created)
		c.send(get)
		s.want(t, "served", active, idle)
		c.send("G")
		c.send("ET / HTTP/1.1\r\n")
		c.send("Host: a\r\n\r\n")
		s.want(t, "served again", active, idle)
		c.Close()
		s.want(t, "closed by the client", closed)
		for what, request := range map[string]string{"closed by the request": last, "refused": "GET / HTTP/1.1\r\n\r\n", "aborted": strings.Replace(get, "/", "/abort", 1)} {
			l.dial(t).send(request)
			time.Sleep(time.Minute)
			s.want(t, what, created, active, closed)
		}
		l.dial(t).send(strings.Replace(get, "/", "/hijack", 1))
		s.want(t, "taken", created, active, hijacked)
		l.dial(t).Close()
		s.want(t, "silent", created, closed)
		l.dial(t).send(get + get + last)
		time.Sleep(time.Minute)
		s.want(t, "pipelined", created, active, idle, active, idle, active, closed)
	})
}

type contextKey string

// The context of a request has the values of BaseContext and ConnContext.
func TestContractContextHooks(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		values := make(chan []any, 1)
		accepted := 0
		k.serve(t, &http.Server{
			BaseContext: func(got net.Listener) context.Context {
				if got.Addr() != l.Addr() && got.Addr().String() != l.Addr().String() {
					t.Errorf("listener %v", got)
				}
				return context.WithValue(t.Context(), contextKey("base"), "b")
			},
			ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
				if conn == nil || ctx.Value(contextKey("base")) != "b" || ctx.Value(http.ServerContextKey) == nil {
					t.Errorf("connection %v, context %v", conn, ctx)
				}
				accepted++
				return context.WithValue(ctx, contextKey("conn"), accepted)
			},
			Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				values <- []any{r.Context().Value(contextKey("base")), r.Context().Value(contextKey("conn"))}
			}),
		}, l)
		for n := range 2 {
			c := l.dial(t)
			for range 2 {
				c.send(get)
				if got := <-values; !slices.Equal(got, []any{"b", n + 1}) {
					t.Errorf("values %v", got)
				}
			}
		}
	})
}

// The context of BaseContext may end: so do those of the requests.
func TestContractBaseContextEnds(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		base, cancel := context.WithCancelCause(t.Context())
		var cause error
		c, _ := k.inBubble(t, &http.Server{BaseContext: func(net.Listener) context.Context { return base }, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			cause = context.Cause(r.Context())
		})})
		c.expect(c.send(get), "")
		reason := errors.New("the reason")
		cancel(reason)
		c.expect(c.received(), "HTTP/1.1 200 OK\r\n")
		if cause != reason {
			t.Errorf("cause %v", cause)
		}
	})
}

// Without a Handler http.DefaultServeMux serves.
func TestContractNoHandler(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		_, addr := k.listen(t, &http.Server{})
		received, _ := exchange(t, addr, "GET /no-such-page HTTP/1.1\r\nHost: a\r\n\r\n")
		if len(received) == 0 || !strings.HasPrefix(received[0], "HTTP/1.1 404 ") || !strings.HasSuffix(received[0], "||404 page not found\n") {
			t.Errorf("received %q", received)
		}
	})
}

// OPTIONS * is served by the server, unless DisableGeneralOptionsHandler is set.
func TestContractOptions(t *testing.T) {
	const request = "OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
	onServers(t, func(t *testing.T, k kind) {
		for _, disabled := range []bool{false, true} {
			_, addr := k.listen(t, &http.Server{DisableGeneralOptionsHandler: disabled, Handler: withProbe(serving(write("handled")))})
			received, kept := exchange(t, addr, request)
			want := "HTTP/1.1 200 OK|Content-Length: 0"
			if disabled {
				want = "HTTP/1.1 200 OK|Content-Length: 7|" + text + "||handled"
			}
			if len(received) != 1 || received[0] != want || !kept {
				t.Errorf("disabled: %v: received %q, kept: %v", disabled, received, kept)
			}
		}
	})
}

// Without keep-alives each connection is closed behind its response, and idle ones at once.
func TestContractKeepAlivesDisabled(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
		idle := l.dial(t)
		idle.send(get)
		s.SetKeepAlivesEnabled(false)
		if !idle.closed() {
			t.Error("the idle connection is open")
		}
		c := l.dial(t)
		if got := c.send(get + get); !strings.Contains(got, "\r\nConnection: close\r\n") || strings.Count(got, "200 OK") != 1 || !c.closed() {
			t.Errorf("received %q, closed: %v", got, c.closed())
		}
		s.SetKeepAlivesEnabled(true)
		again := l.dial(t)
		if got := again.send(get); strings.Contains(got, "close") || again.closed() {
			t.Errorf("received %q, closed: %v", got, again.closed())
		}
	})
}

// Shutdown closes the listeners and the idle connections, waits for the others, and calls what is registered.
func TestContractShutdown(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l, other := newMemory(), newMemory()
		finish := make(chan struct{})
		var alive error
		s := k.build(&http.Server{ErrorLog: wiretest.Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-finish
				alive = r.Context().Err()
			}
		})})
		var called atomic.Int32
		s.RegisterOnShutdown(func() { called.Add(1) })
		s.RegisterOnShutdown(func() { called.Add(1) })
		served := make(chan error, 2)
		go func() { served <- s.Serve(l) }()
		go func() { served <- s.Serve(other) }()
		idle, active := l.dial(t), other.dial(t)
		idle.send(get)
		active.send(strings.Replace(get, "/", "/slow", 1))
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		for range 2 {
			if err := <-served; err != http.ErrServerClosed {
				t.Errorf("Serve: %v", err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(done) > 0 || !idle.closed() || active.closed() || called.Load() != 2 {
			t.Errorf("done: %d, idle closed: %v, active closed: %v, called: %d", len(done), idle.closed(), active.closed(), called.Load())
		}
		close(finish)
		if err := <-done; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if got := active.received(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.Contains(got, "\r\nConnection: close\r\n") || !active.closed() || alive != nil {
			t.Errorf("received %q, closed: %v, context: %v", got, active.closed(), alive)
		}
		checkClosed(t, s)
	})
}

// checkClosed fails the test unless s serves no more.
func checkClosed(t *testing.T, s httpServer) {
	t.Helper()
	l := newMemory()
	if err := s.Serve(l); err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
	select {
	case <-l.closed:
	default:
		t.Error("the listener is open")
	}
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		t.Errorf("ListenAndServe: %v", err)
	}
	if err := errors.Join(s.Shutdown(context.Background()), s.Close()); err != nil {
		t.Error(err)
	}
}

// Shutdown returns when its context ends; the connections live until Close.
func TestContractShutdownContext(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		left := false
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			left = true
		})}, l)
		c := l.dial(t)
		c.send(get)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != context.DeadlineExceeded || left || c.closed() {
			t.Errorf("Shutdown: %v, left: %v, closed: %v", err, left, c.closed())
		}
		if err := s.Close(); err != nil || !c.closed() || !left {
			t.Errorf("Close: %v, left: %v, closed: %v", err, left, c.closed())
		}
	})
}

// A connection that has been accepted, and not served yet when Shutdown begins: package server serves its first
// request, net/http's server drops it. A client can't know that it was, since the connection was open.
func TestContractShutdownAndNewConnection(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
		c := l.dial(t)
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		synctest.Wait()
		got := c.send(get)
		if served := strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") && strings.Contains(got, "\r\nConnection: close\r\n"); served != (k == own) || !served && got != "" {
			t.Errorf("received %q", got)
		}
		if err := <-done; err != nil || !c.closed() {
			t.Errorf("Shutdown: %v, closed: %v", err, c.closed())
		}
	})
}

// A connection that sends nothing is not waited for at Shutdown longer than some seconds.
func TestContractShutdownAndSilentConnection(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		s := k.serve(t, new(http.Server), l)
		c := l.dial(t)
		synctest.Wait()
		began := time.Now()
		if err := s.Shutdown(context.Background()); err != nil || time.Since(began) > time.Minute || !c.closed() {
			t.Errorf("Shutdown: %v behind %v, closed: %v", err, time.Since(began), c.closed())
		}
	})
}

// Nor is one that has sent a part of a header.
func TestContractShutdownAndUnfinishedHeader(t *testing.T) {
	const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, part := range []string{"G", get[:len(get)-2], get + "G", get + get[:len(get)-2],
			post + "\r\n", post + "\r\nG", post + "\r\n\r\n" + get[:len(get)-2]} {
			l := newMemory()
			s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
			c := l.dial(t)
			c.send(part)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if err := s.Shutdown(ctx); err != nil || time.Since(began) > time.Minute || !c.closed() {
				t.Errorf("%q: Shutdown: %v behind %v, closed: %v", part, err, time.Since(began), c.closed())
			}
			cancel()
		}
	})
}

// Nor is one whose first header begins meanwhile, and does not end.
func TestContractHeaderBeginsDuringShutdown(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
		c := l.dial(t)
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		c.after(time.Second)
		c.send(get[:len(get)-2])
		if c.after(time.Minute); len(ended) == 0 || !c.closed() {
			t.Errorf("Shutdown has ended: %v; closed: %v", len(ended) > 0, c.closed())
		}
		c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A response whose header was sent before is the last one of its connection, too.
func TestContractEndBehindHeader(t *testing.T) {
	ends := map[string]func(s httpServer) error{
		"Shutdown":             func(s httpServer) error { return s.Shutdown(context.Background()) },
		"SetKeepAlivesEnabled": func(s httpServer) error { s.SetKeepAlivesEnabled(false); return nil },
	}
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, end := range ends {
			l, finish := newMemory(), make(chan struct{})
			s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				flush(w)
				<-finish
			})}, l)
			c := l.dial(t)
			c.expect(c.send(get), "HTTP/1.1 200 ")
			ended := make(chan error, 1)
			go func() { ended <- end(s) }()
			synctest.Wait()
			close(finish)
			if c.after(time.Minute); !c.closed() || len(ended) == 0 {
				t.Errorf("%s: closed: %v, ended: %v", name, c.closed(), len(ended) > 0)
			}
			c.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// lastAccepted is a listener that accepts one more connection a second after it was closed.
type lastAccepted struct {
	*memory
	last net.Conn
}

func (l *lastAccepted) Accept() (net.Conn, error) {
	c, err := l.memory.Accept()
	if err == nil || l.last == nil {
		return c, err
	}
	time.Sleep(time.Second)
	c, l.last = l.last, nil
	return c, nil
}

// A connection that is accepted while Shutdown closes the listener is served.
func TestContractAcceptedDuringShutdown(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		near, far := wstest.Pipe()
		c := &client{Conn: near, t: t}
		go c.collect()
		l := &lastAccepted{newMemory(), far}
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
		synctest.Wait()
		began := time.Now()
		if err := s.Shutdown(context.Background()); err != nil || time.Since(began) < time.Second || !c.closed() {
			t.Errorf("Shutdown: %v, behind %v, closed: %v", err, time.Since(began), c.closed())
		}
		near.Close()
	})
}

// Close closes all connections.
func TestContractClose(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		var failure error
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, failure = io.Copy(io.Discard, r.Body)
		})}, l)
		silent, idle, active := l.dial(t), l.dial(t), l.dial(t)
		idle.send(get)
		active.send(chunked)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !silent.closed() || !idle.closed() || !active.closed() || failure == nil {
			t.Errorf("closed: %v, %v, %v, read: %v", silent.closed(), idle.closed(), active.closed(), failure)
		}
		checkClosed(t, s)
	})
}

// A server may listen on a unix socket.
func TestContractUnixSocket(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		k.serve(t, &http.Server{Handler: withProbe(func(w http.ResponseWriter, r *http.Request) {
			if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); !ok || local.Name != path {
				t.Errorf("local address %v", r.Context().Value(http.LocalAddrContextKey))
			}
			_, _ = io.Copy(w, r.Body)
		})}, l)
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p := wiretest.NewPeer(t, conn)
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + probe)
		p.End()
		if got := replies(p.Rest()); len(got) != 2 || got[0] != "HTTP/1.1 200 OK|Content-Length: 5|"+text+"||hello" || got[1] != probeReply {
			t.Errorf("received %q", got)
		}
	})
}

// faulty is a listener whose first accepts fail.
type faulty struct {
	*memory
	failures []error
}

func (l *faulty) Accept() (net.Conn, error) {
	if len(l.failures) > 0 {
		err := l.failures[0]
		l.failures = l.failures[1:]
		return nil, err
	}
	return l.memory.Accept()
}

// temporary is an error that passes, as that of a process without descriptors.
type temporary struct{}

func (temporary) Error() string   { return "temporary" }
func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }

// An accept that fails for a time is repeated; another error ends Serve.
func TestContractAcceptFails(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := &faulty{memory: newMemory(), failures: []error{temporary{}, temporary{}, temporary{}}}
		log := new(testLog)
		k.serve(t, &http.Server{ErrorLog: log.logger(), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}, l)
		c := l.dial(t)
		c.expect(c.send(get), "HTTP/1.1 200 OK\r\n")
		if !strings.Contains(log.String(), "temporary") {
			t.Errorf("log %q", log)
		}
		reason := errors.New("the reason")
		broken := &faulty{memory: newMemory(), failures: []error{reason}}
		if err := k.build(&http.Server{ErrorLog: wiretest.Quiet()}).Serve(broken); err != reason {
			t.Errorf("Serve: %v", err)
		}
		<-broken.closed
	})
}

// ListenAndServe listens at Addr, ListenAndServeTLS with the certificate of files.
func TestContractListenAndServe(t *testing.T) {
	certFile, keyFile := certificateFiles(t)
	onServers(t, func(t *testing.T, k kind) {
		for _, secure := range []bool{false, true} {
			addrs := make(chan string, 1)
			s := k.build(&http.Server{Addr: "127.0.0.1:0", ErrorLog: wiretest.Quiet(), Handler: serving(write("hello")),
				BaseContext: func(l net.Listener) context.Context { addrs <- l.Addr().String(); return context.Background() }})
			served := make(chan error, 1)
			go func() {
				if secure {
					served <- s.ListenAndServeTLS(certFile, keyFile)
				} else {
					served <- s.ListenAndServe()
				}
			}()
			addr := wiretest.Await(t, addrs, "listener")
			if resp, body := getOver(t, addr, secure, "http/1.1"); body != "hello" || resp.ProtoMajor != 1 {
				t.Errorf("secure: %v: %s %q", secure, resp.Proto, body)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if err := wiretest.Await(t, served, "end of Serve"); err != http.ErrServerClosed {
				t.Errorf("Serve: %v", err)
			}
		}
		if err := k.build(&http.Server{Addr: "127.0.0.1:0"}).ListenAndServeTLS("none", "none"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("ListenAndServeTLS: %v", err)
		}
		if err := k.build(&http.Server{Addr: "192.0.2.1:-1"}).ListenAndServe(); err == nil {
			t.Error("no error of an address that can't be")
		}
	})
}

// certificateFiles writes testCertificate to files.
func certificateFiles(t testing.TB) (certFile, keyFile string) {
	pair := testCertificate()[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	if err := errors.Join(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

// getOver gets / by a connection of its own, with a protocol of TLS if secure, else in the clear.
func getOver(t testing.TB, addr string, secure bool, protocol string) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
	defer transport.CloseIdleConnections()
	transport.Protocols.SetHTTP1(protocol == "http/1.1")
	transport.Protocols.SetHTTP2(protocol == "h2" && secure)
	transport.Protocols.SetUnencryptedHTTP2(protocol == "h2" && !secure)
	scheme := map[bool]string{false: "http", true: "https"}[secure]
	resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get(scheme + "://" + addr)
	if err != nil {
		t.Errorf("%s over %s: %v", protocol, scheme, err)
		return new(http.Response), ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp, string(body)
}
