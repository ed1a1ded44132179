package deadline_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/deadline"
)

func (w *writer) Header() http.Header { return http.Header{} }

func (w *writer) WriteHeader(int) {}

func (w *writer) Write(p []byte) (int, error) {
	time.Sleep(w.takes)
	if w.short {
		return 0, nil
	}
	return len(p), nil
}

// A Bounded sets deadlines, over HTTP/1 and HTTP/2, for the writes of a response and for what the server writes after it.
func TestBounded(t *testing.T) {
	const s = time.Second
	write := func(b *deadline.Bounded, n int) { _, _ = b.Write(make([]byte, n)) }
	for _, test := range []struct {
		name     string
		run      func(b *deadline.Bounded)
		one, two []setting
	}{
		{"nothing is written", func(b *deadline.Bounded) { time.Sleep(s); b.LeaveWritten() }, nil, nil},
		{"a header, after the request's deadline", func(b *deadline.Bounded) {
			time.Sleep(10 * s)
			b.WriteHeader(http.StatusGatewayTimeout)
			b.LeaveWritten()
		}, []setting{{10 * s, 15 * s}}, []setting{{10 * s, 15 * s}}},
		{"content, after the request's deadline", func(b *deadline.Bounded) {
			time.Sleep(10 * s)
			write(b, 100<<10)
			b.LeaveWritten()
		}, []setting{{10 * s, 15 * s}, {12 * s, 17 * s}, {14 * s, 19 * s}}, []setting{{14 * s, 19 * s}}},
		{"an interim response alone", func(b *deadline.Bounded) {
			b.WriteHeader(http.StatusEarlyHints)
			time.Sleep(s)
			b.LeaveWritten()
		}, []setting{{0, 5 * s}, {s, cleared}}, nil},
		{"the handler's own deadline", func(b *deadline.Bounded) {
			_ = http.NewResponseController(b).SetWriteDeadline(time.Now().Add(20 * s))
			write(b, 100<<10)
			b.LeaveWritten()
		}, []setting{{0, 20 * s}}, []setting{{0, 20 * s}}},
	} {
		for major, want := range map[int][]setting{1: test.one, 2: test.two} {
			t.Run(test.name+" over HTTP/"+string(rune('0'+major)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*s)
					defer cancel()
					w := &writer{start: time.Now(), takes: 2 * s}
					test.run(deadline.Bound(w, (&http.Request{ProtoMajor: major}).WithContext(ctx), 4*s))
					time.Sleep(time.Hour)
					if !slices.Equal(w.writes, want) {
						t.Errorf("deadlines %v, want %v", w.writes, want)
					}
				})
			})
		}
	}
}

// A wrapper that writes nothing and returns no error does not hold the handler up.
func TestBoundedAcceptsNothing(t *testing.T) {
	b := deadline.Bound(&writer{short: true}, &http.Request{ProtoMajor: 1}, 0)
	if n, err := b.Write(make([]byte, 100<<10)); n != 0 || err != io.ErrShortWrite {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type hijacker struct{ writer }

func (*hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, net.ErrClosed }

// Writer returns an http.Hijacker only if the wrapped writer is one.
func TestBoundedHijacker(t *testing.T) {
	h, ok := deadline.Bound(new(hijacker), &http.Request{ProtoMajor: 1}, 0).Writer().(http.Hijacker)
	if !ok {
		t.Fatal("no Hijacker")
	}
	if _, _, err := h.Hijack(); err != net.ErrClosed {
		t.Error(err)
	}
	if _, ok := deadline.Bound(new(writer), &http.Request{ProtoMajor: 2}, 0).Writer().(http.Hijacker); ok {
		t.Error("a Hijacker")
	}
}

// A response that was held back is bounded by its own timeout. The server's WriteTimeout does not matter.
func TestBoundedHeld(t *testing.T) {
	const s = time.Second
	for major, want := range map[int][]setting{
		1: {{10 * s, 85 * s}, {60 * s, 135 * s}, {110 * s, 185 * s}},
		2: {{10 * s, cleared}, {110 * s, 185 * s}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &writer{start: time.Now(), takes: 50 * s}
			ctx := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: time.Hour})
			time.Sleep(10 * s)
			b := deadline.BoundHeld(w, (&http.Request{ProtoMajor: major}).WithContext(ctx))
			_, _ = b.Write(make([]byte, 100<<10))
			b.Leave()
			time.Sleep(time.Hour)
			if !slices.Equal(w.writes, want) {
				t.Errorf("HTTP/%d: deadlines %v, want %v", major, w.writes, want)
			}
		})
	}
}
