package http1_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A connection of the embedder's that panics on a goroutine of the package's fails its call, and the program continues.
func TestConnPanics(t *testing.T) {
	for name, test := range map[string]struct {
		method   string
		upload   bool // the connection panics while the body is sent
		response string
	}{
		"a write of a body":          {"Write", true, ""},
		"the deadline behind a body": {"SetReadDeadline", true, ""},
		"an interrupt":               {"SetDeadline", false, ""},
		"the end of a broken call":   {"Close", false, ""},
		"the end of an idle time":    {"Close", false, ok},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var panics atomic.Int32
				o := http1.Options{HeaderTimeout: time.Hour, Panicked: func(v any, _ []byte) {
					if panics.Add(1); v != test.method {
						t.Errorf("a panic with %v", v)
					}
				}}
				s := newScripted(t, o, func(_ int32, p *wiretest.Peer) {
					p.Header()
					p.Send(test.response)
					_ = p.SetDeadline(time.Time{})
					_, _ = io.Copy(io.Discard, p.R)
				})
				var armed atomic.Bool
				s.near = func(c net.Conn) net.Conn {
					return wiretest.Hooked{Conn: c, Called: func(method string) {
						if method == test.method && armed.Load() {
							panic(method)
						}
					}}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c := &http1.Call{Request: text(ctx, "GET", "")}
				if test.upload {
					body, w := io.Pipe()
					c.Request = request(ctx, "POST", body, -1)
					go func() {
						time.Sleep(time.Second) // the header has been sent by then
						armed.Store(true)
						w.Write([]byte("body"))
						w.Close()
					}()
				} else {
					armed.Store(true)
				}
				status, _, err := s.send(c)
				if (err == nil) != (test.response != "") {
					t.Errorf("status %d, error %v", status, err)
				}
				time.Sleep(2 * time.Minute) // an idle connection is closed by then
				if panics.Load() == 0 {
					t.Error("no panic was reported")
				}
			})
		})
	}
}

// A dial that ends its goroutine, as a test's FailNow does, has failed.
func TestDialGoexit(t *testing.T) {
	p := http1.NewPool(http1.Options{Dial: func(context.Context, http1.Addr) (net.Conn, error) {
		runtime.Goexit()
		return nil, nil
	}})
	if c, err := p.Get(t.Context(), http1.Addr{Name: "a:1"}, false); c != nil || err == nil || !strings.Contains(err.Error(), "dial") {
		t.Errorf("%v, %v", c, err)
	}
}

// goexit is a body whose second read ends its goroutine, as a test's FailNow does.
type goexit struct{ read bool }

func (g *goexit) Read(p []byte) (int, error) {
	if g.read {
		runtime.Goexit()
	}
	g.read = true
	return copy(p, "part"), nil
}

func (*goexit) Close() error { return nil }

// A body that ends the goroutine of its upload fails its call, which would else wait for a response without a bound.
func TestUploadGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, http1.Options{HeaderTimeout: time.Minute}, func(_ int32, p *wiretest.Peer) {
			_ = p.SetDeadline(time.Time{})
			_, _ = io.Copy(io.Discard, p.R)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		status, _, err := s.send(&http1.Call{Request: request(ctx, "POST", new(goexit), -1)})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "goroutine") {
			t.Errorf("status %d, error %v, context %v", status, err, ctx.Err())
		}
	})
}
