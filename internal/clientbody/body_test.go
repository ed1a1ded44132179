package clientbody_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
)

// client is a request's body and its writer: what is sent comes out of Read, until the read deadline.
type client struct {
	http.ResponseWriter
	send chan []byte // closed at the body's end

	mu        sync.Mutex
	deadline  time.Time
	changed   chan struct{} // closed by a new deadline
	sets      int
	closed    bool
	returned  bool // the handler has: nothing may be used
	lateCalls int
}

func newClient() *client { return &client{send: make(chan []byte), changed: make(chan struct{})} }

func (c *client) use() {
	if c.returned {
		c.lateCalls++
	}
}

func (c *client) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use()
	c.sets++
	c.deadline = t
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

func (c *client) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		c.use()
		deadline, changed, closed := c.deadline, c.changed, c.closed
		c.mu.Unlock()
		var over <-chan time.Time
		if !deadline.IsZero() {
			over = time.After(time.Until(deadline))
		}
		switch {
		case closed:
			return 0, http.ErrBodyReadAfterClose
		case !deadline.IsZero() && !time.Now().Before(deadline):
			return 0, os.ErrDeadlineExceeded
		}
		select {
		case piece, more := <-c.send:
			if !more {
				return 0, io.EOF
			}
			return copy(p, piece), nil
		case <-changed:
		case <-over:
		}
	}
}

func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use()
	c.closed = true
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// over is the end of the handler.
func (c *client) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.returned = true
}

func (c *client) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lateCalls > 0 {
		t.Errorf("used %d times behind the handler", c.lateCalls)
	}
}

// start returns the body of a request to a writer w.
func start(w http.ResponseWriter, body io.ReadCloser, ctx context.Context, timeout time.Duration) *clientbody.Body {
	b := new(clientbody.Body)
	r := (&http.Request{Body: body, ProtoMajor: 2}).WithContext(ctx)
	b.Start(clientside.New(w, r), r, timeout)
	return b
}

// readAll reads on a goroutine, and returns the failure of the last read.
func readAll(b *clientbody.Body) <-chan error {
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := b.Read(make([]byte, 8)); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

func TestFinishEndsARead(t *testing.T) {
	for name, writer := range map[string]func(*client) http.ResponseWriter{
		"a deadline":  func(c *client) http.ResponseWriter { return c },
		"no deadline": func(c *client) http.ResponseWriter { return struct{ http.ResponseWriter }{c} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient()
				b := start(writer(c), c, t.Context(), time.Minute)
				ended := readAll(b)
				c.send <- []byte("x")
				synctest.Wait()
				if !b.Awaited() {
					t.Error("the client is not waited for")
				}
				b.Finish()
				c.over()
				if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) && err != http.ErrBodyReadAfterClose {
					t.Errorf("the read ends with %v", err)
				}
				if _, err := b.Read(nil); err != clientbody.ErrFinished {
					t.Errorf("another one with %v", err)
				}
				b.Interrupt(func() {})
				b.Finish()
				c.check(t)
			})
		})
	}
}

// full is a writer of HTTP/1 whose response may begin before the request has ended.
type full struct{ *client }

func (full) EnableFullDuplex() error { return nil }

// What begins to read while Finish reads a small rest must not read beside it.
func TestNothingReadsBesideADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		b := new(clientbody.Body)
		r := (&http.Request{Body: c, ProtoMajor: 1, ContentLength: 5}).WithContext(t.Context())
		b.Start(clientside.New(full{c}, r), r, time.Minute)
		b.FullDuplex()
		begun := time.Now()
		finished := make(chan struct{})
		go func() {
			b.Finish()
			close(finished)
		}()
		synctest.Wait()
		if _, err := b.Read(make([]byte, 8)); err != clientbody.ErrFinished {
			t.Errorf("a read beside Finish: %v", err)
		}
		if <-finished; time.Since(begun) == 0 {
			t.Error("nothing was drained")
		}
		c.over()
		c.check(t)
	})
}

// A body that was given to a reader is not drained, though nothing was read yet.
func TestNoDrainOfAClaimedBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		b := new(clientbody.Body)
		r := (&http.Request{Body: c, ProtoMajor: 1, ContentLength: 5}).WithContext(t.Context())
		b.Start(clientside.New(full{c}, r), r, time.Minute)
		b.FullDuplex()
		b.Claim()
		begun := time.Now()
		b.Finish()
		if took := time.Since(begun); took > 0 {
			t.Errorf("Finish took %v", took)
		}
		if _, err := b.Read(make([]byte, 8)); err != clientbody.ErrFinished {
			t.Errorf("a read behind Finish: %v", err)
		}
	})
}

// Nothing is used behind Finish, also if several calls run at the same time.
func TestFinishBesideTheRest(t *testing.T) {
	for range 2000 {
		c := newClient()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		b := start(c, c, ctx, time.Minute)
		ended := readAll(b)
		var beside sync.WaitGroup
		beside.Go(func() { b.Interrupt(func() {}) })
		beside.Go(func() {
			for range 3 {
				select {
				case c.send <- []byte("x"):
				case <-ended:
					return
				}
			}
			close(c.send)
		})
		b.Finish()
		c.over()
		beside.Wait()
		cancel()
		c.check(t)
	}
}

// The time of a request, and that of each read, end a read that waits, and nothing else.
func TestTimeOfABody(t *testing.T) {
	for name, test := range map[string]struct {
		whole, each time.Duration
		after       time.Duration // when the read fails
	}{
		"of the request": {10 * time.Second, time.Minute, 10 * time.Second},
		"of a read":      {time.Hour, 8 * time.Second, 10 * time.Second},
		"no other":       {10 * time.Second, 0, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.whole)
				defer cancel()
				c := newClient()
				b := start(c, c, ctx, test.each)
				began := time.Now()
				_, err := b.Read(make([]byte, 1))
				if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != test.after || !b.Awaited() {
					t.Errorf("%v after %v, awaited: %v", err, time.Since(began), b.Awaited())
				}
				b.Finish()
			})
		})
	}
}

// What has ended has no deadline, and gets none.
func TestEndOfABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := newClient()
		b := start(c, c, ctx, time.Minute)
		close(c.send)
		if _, err := b.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the read ends with %v", err)
		}
		sets := c.sets
		time.Sleep(2 * time.Second)
		b.Interrupt(func() {})
		if _, err := b.Read(make([]byte, 1)); err != io.EOF || b.Awaited() {
			t.Errorf("another one with %v, awaited: %v", err, b.Awaited())
		}
		b.Finish()
		if c.sets != sets || !c.deadline.IsZero() || c.closed {
			t.Errorf("deadline %v, set %d times more, closed: %v", c.deadline, c.sets-sets, c.closed)
		}
	})
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		b := start(c, c, t.Context(), 0)
		ended := readAll(b)
		synctest.Wait()
		b.Interrupt(func() {
			if !c.deadline.IsZero() {
				t.Error("the read fails before the request's context has ended")
			}
		})
		for _, err := range []error{<-ended, <-readAll(b)} {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a read ends with %v", err)
			}
		}
		b.Finish()
	})
}

// A body of which nothing was read by then is over as well.
func TestInterruptBeforeTheFirstRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		b := start(c, c, t.Context(), 0)
		b.Interrupt(func() {})
		ended := readAll(b)
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a read ends with %v", err)
			}
		default:
			t.Error("the read waits for the client")
		}
		b.Finish()
	})
}

// A client that is read from though its body is not wanted is not waited for.
func TestUnwanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient()
		b := start(c, c, t.Context(), time.Minute)
		b.Unbound()
		ended := readAll(b)
		time.Sleep(time.Hour)
		if b.Awaited() {
			t.Error("awaited")
		}
		b.Finish()
		<-ended
	})
}

// A body whose Read panics is left by then.
func TestPanicOfABody(t *testing.T) {
	b := start(newClient(), panicking{}, t.Context(), 0)
	func() {
		defer func() { _ = recover() }()
		_, _ = b.Read(nil)
	}()
	b.Finish()
}

type panicking struct{ io.ReadCloser }

func (panicking) Read([]byte) (int, error) { panic("no") }

// A client that expects a 100, and gets a response before any read, is sent no 100, and its body is not waited for. That of a
// client which a read has sent a 100 is.
func TestAwaitedBehindAResponse(t *testing.T) {
	for name, test := range map[string]struct {
		duplex, continued bool
	}{"": {true, false}, "continued": {true, true}, "below wrappers": {false, false}, "below wrappers, continued": {false, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient()
				c.ResponseWriter = httptest.NewRecorder()
				var w http.ResponseWriter = c
				if test.duplex {
					w = full{c}
				}
				r := (&http.Request{Body: c, ProtoMajor: 1, ProtoMinor: 1}).WithContext(t.Context())
				b := new(clientbody.Body)
				b.Start(clientside.New(w, r), r, time.Minute)
				b.FullDuplex()
				b.ExpectContinue(r, 0)
				var ended <-chan error
				if test.continued {
					ended = readAll(b)
					synctest.Wait()
				}
				b.StartResponse()
				if !test.continued {
					ended = readAll(b)
				}
				time.Sleep(time.Second)
				if b.Awaited() != test.continued {
					t.Errorf("awaited: %v", b.Awaited())
				}
				time.Sleep(time.Hour)
				select {
				case err := <-ended:
					if !test.continued {
						t.Errorf("the read has ended with %v", err)
					}
				default:
					if test.continued {
						t.Error("the read has not ended")
					}
				}
				b.Finish()
			})
		})
	}
}

// native is the writer of a server that is a clientside.Server itself.
type native struct {
	full
	called []string
}

func (n *native) WriteContinue() { n.called = append(n.called, "WriteContinue") }

func (n *native) CloseAfterResponse() { n.called = append(n.called, "CloseAfterResponse") }

// A server's own means are used where it has some: nothing is written to its writer for a 100, and none of net/http's side
// effects is relied on to close the connection.
func TestServersOwnMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient() // without a ResponseWriter
		n := &native{full: full{c}}
		r := (&http.Request{Body: c, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1}).WithContext(t.Context())
		b := new(clientbody.Body)
		b.Start(clientside.New(n, r), r, time.Minute)
		b.FullDuplex()
		b.ExpectContinue(r, 0)
		ended := readAll(b)
		synctest.Wait()
		b.Finish()
		<-ended
		if want := []string{"WriteContinue", "CloseAfterResponse"}; !slices.Equal(n.called, want) {
			t.Errorf("called: %v, want %v", n.called, want)
		}
	})
}
