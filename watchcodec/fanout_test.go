package watchcodec_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

func fanout(t testing.TB, o watchcodec.FanoutOptions) *watchcodec.Fanout {
	t.Helper()
	f, err := watchcodec.NewFanout(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFanout: every client receives every event after it has joined, in order.
func TestFanout(t *testing.T) {
	leaktest.Check(t)
	f := fanout(t, watchcodec.FanoutOptions{})
	s := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.Follow(w, r, watchcodec.FollowOptions{After: f.Version(), Before: func(w io.Writer) error {
			_, err := io.WriteString(w, "begin\n")
			return err
		}})
	}))
	defer s.Close()
	const clients, events = 50, 500
	var ready, running sync.WaitGroup
	ready.Add(clients)
	for range clients {
		running.Go(func() {
			resp, err := http.Get(s.URL)
			if err != nil {
				t.Error(err)
				ready.Done()
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			if begin, err := lines.ReadString('\n'); begin != "begin\n" {
				t.Errorf("%q %v", begin, err)
			}
			ready.Done()
			rest, err := io.ReadAll(lines)
			if want := numbered(events); string(rest) != want || err != nil {
				t.Errorf("%d bytes and %v, want %d", len(rest), err, len(want))
			}
		})
	}
	ready.Wait()
	for i := range events {
		f.Send(fmt.Appendf(nil, "event %d\n", i))
	}
	f.Close()
	running.Wait()
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "event %d\n", i)
	}
	return b.String()
}

// slow is a client that accepts nothing until it is released.
type slow struct {
	header http.Header
	mu     sync.Mutex
	got    strings.Builder
	let    chan struct{}
}

func (s *slow) Header() http.Header                { return s.header }
func (s *slow) WriteHeader(int)                    {}
func (s *slow) FlushError() error                  { return nil }
func (s *slow) SetWriteDeadline(t time.Time) error { return nil }
func (s *slow) Write(p []byte) (int, error) {
	<-s.let
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

// TestFanoutSlowClient: a client that falls too far behind receives a 410, and until then holds up
// no other client.
func TestFanoutSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout(t, watchcodec.FanoutOptions{Frames: 10})
		behind := &slow{header: http.Header{}, let: make(chan struct{})}
		quick := &slow{header: http.Header{}, let: make(chan struct{})}
		close(quick.let)
		var running sync.WaitGroup
		for _, c := range []*slow{behind, quick} {
			running.Go(func() { f.ServeHTTP(c, httptest.NewRequest("GET", "/", nil)) })
		}
		synctest.Wait()
		for i := range 100 {
			f.Send(fmt.Appendf(nil, "event %d\n", i))
			synctest.Wait()
		}
		if got := quick.got.String(); got != numbered(100) {
			t.Errorf("the quick client has %d bytes", len(got))
		}
		close(behind.let)
		synctest.Wait()
		if got := behind.got.String(); !strings.HasPrefix(got, "event 0\n{\"type\":\"ERROR\"") || !strings.Contains(got, `"code":410`) || !strings.HasSuffix(got, "}\n") {
			t.Errorf("the slow client received %q", got)
		}
		f.Close()
		running.Wait()
	})
}

// pausing is a client over HTTP/2 that counts its deadlines.
type pausing struct {
	*httptest.ResponseRecorder
	deadlines int
}

func (c *pausing) SetWriteDeadline(time.Time) error {
	c.deadlines++
	return nil
}

// TestFanoutPausesOverHTTP2: no deadline ends an HTTP/2 stream while there are no frames to send.
func TestFanoutPausesOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout(t, watchcodec.FanoutOptions{})
		c := &pausing{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("GET", "/", nil)
		r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
		var running sync.WaitGroup
		running.Go(func() { f.ServeHTTP(c, r) })
		synctest.Wait()
		for i := range 2 {
			f.Send(fmt.Appendf(nil, "event %d\n", i))
			time.Sleep(10 * time.Minute)
		}
		deadlines := c.deadlines
		f.Close()
		running.Wait()
		if got := c.Body.String(); got != numbered(2) || deadlines != 0 {
			t.Errorf("sent %q, %d deadlines", got, deadlines)
		}
	})
}

// TestFanoutEndsBehindAPause: a stream that Close ends is whole, however long no frame was sent
// before.
func TestFanoutEndsBehindAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout(t, watchcodec.FanoutOptions{})
		near, far := net.Pipe()
		defer near.Close()
		s := wiretest.Server(&http.Server{Handler: f})
		l := wiretest.OneConn(far)
		_ = s.Serve(l) // the connection is still served
		if _, err := io.WriteString(near, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { f.Send([]byte("event 0\n")) })
		time.AfterFunc(10*time.Minute, f.Close)
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != numbered(1) {
			t.Errorf("read %q, %v", got, err)
		}
		_ = s.Close()
	})
}

// idle is a client that counts its frames.
type idle struct {
	header http.Header
	n      *atomic.Int64
}

func (c *idle) Header() http.Header                { return c.header }
func (c *idle) WriteHeader(int)                    {}
func (c *idle) FlushError() error                  { return nil }
func (c *idle) SetWriteDeadline(t time.Time) error { return nil }
func (c *idle) Write(p []byte) (int, error) {
	c.n.Add(1)
	return len(p), nil
}

// TestFanoutOfTenThousand: 10,000 clients (1,000 in a quick run) receive 100 events, each of which
// is held once, and none holds more than 8 KiB.
func TestFanoutOfTenThousand(t *testing.T) {
	leaktest.Check(t)
	f := fanout(t, watchcodec.FanoutOptions{})
	const events = 100
	clients := wiretest.Size(10000, 1000)
	memory := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	var n atomic.Int64
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
	before := memory()
	joinAll(&running, f, clients, &n, r)
	event := []byte(strings.Repeat("x", 1000))
	for sent := range int64(events) {
		f.Send(event)
		for deadline := time.Now().Add(30 * time.Second); n.Load() < (sent+1)*int64(clients) && time.Now().Before(deadline); {
			runtime.Gosched()
		}
	}
	if each := (memory() - before) / int64(clients); each > factor*8<<10 {
		t.Errorf("%d bytes for each client", each)
	}
	cancel()
	running.Wait()
}

// TestFanoutFollow: a client that names its version receives the later frames, if they are kept,
// and bookmarks while there are none.
func TestFanoutFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout(t, watchcodec.FanoutOptions{Version: 100, Frames: 2})
		follow := func(after uint64) string {
			w := httptest.NewRecorder()
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
			defer cancel()
			f.Follow(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx), watchcodec.FollowOptions{After: after, Bookmark: func(version uint64) []byte {
				return fmt.Appendf(nil, "bookmark %d\n", version)
			}})
			return w.Body.String()
		}
		f.SendVersion(105, []byte("a\n"))
		f.SendVersion(110, []byte("b\n"))
		for after, want := range map[uint64]string{100: "a\nb\n", 104: "a\nb\n", 105: "b\n", 107: "b\n", 110: ""} {
			if got := follow(after); got != want+"bookmark 110\nbookmark 110\n" {
				t.Errorf("after %d: %q", after, got)
			}
		}
		if got := follow(99); !strings.Contains(got, `"code":410`) {
			t.Errorf("after a version that is not kept: %q", got)
		}
		f.SendVersion(111, []byte("c\n"))
		if f.Kept(104) || !f.Kept(105) || !f.Kept(111) || f.Kept(112) {
			t.Error("the kept versions are 105 to 111")
		}
	})
}

// joinAll starts clients, and returns when each of them receives the frames that are sent from now
// on.
func joinAll(running *sync.WaitGroup, f *watchcodec.Fanout, clients int, n *atomic.Int64, r *http.Request) {
	var ready sync.WaitGroup
	ready.Add(clients)
	for range clients {
		running.Go(func() {
			f.Follow(&idle{http.Header{}, n}, r, watchcodec.FollowOptions{After: f.Version(), Before: func(io.Writer) error {
				ready.Done()
				return nil
			}})
		})
	}
	ready.Wait()
}

// BenchmarkFanout10000 sends an event to 10,000 clients.
func BenchmarkFanout10000(b *testing.B) {
	f := fanout(b, watchcodec.FanoutOptions{})
	const clients = 10000
	var n atomic.Int64
	var running sync.WaitGroup
	r := httptest.NewRequest("GET", "/", nil)
	joinAll(&running, f, clients, &n, r)
	event := []byte(strings.Repeat("x", 1000))
	b.ReportAllocs()
	for b.Loop() {
		before := n.Load()
		f.Send(event)
		for n.Load() < before+clients {
			runtime.Gosched()
		}
	}
	f.Close()
	running.Wait()
}
