package statuspage_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
)

// stream is a response whose content can be read while it is written.
type stream struct {
	mu     sync.Mutex
	header http.Header
	status int
	b      bytes.Buffer
	gone   bool // writes fail
	ctx    context.Context
	leave  context.CancelFunc
}

func newStream() *stream {
	s := &stream{header: http.Header{}}
	s.ctx, s.leave = context.WithCancel(context.Background())
	return s
}

func (s *stream) request(method, query string) *http.Request {
	return httptest.NewRequestWithContext(s.ctx, method, "/?"+query, nil)
}

func (s *stream) Header() http.Header { return s.header }
func (s *stream) WriteHeader(n int)   { s.status = n }
func (s *stream) Flush()              {}
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0, errors.New("gone")
	}
	return s.b.Write(p)
}

func (s *stream) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// An event is sent at once, and one after each interval, with the state of that time. A stream ends when its client
// leaves, when a write fails, and when the page is closed.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, upstream.Options{Name: "app"}, upstream.Target{Addr: "a:1"})
		defer g.Close()
		o := of(g)
		o.Interval = 5 * time.Second
		p := newPage(t, o)
		leaving, failing, last := newStream(), newStream(), newStream()
		var ended sync.WaitGroup
		var running atomic.Int64
		for _, s := range []*stream{leaving, failing, last} {
			running.Add(1)
			ended.Go(func() {
				defer running.Add(-1)
				p.ServeHTTP(s, s.request("GET", "events"))
			})
		}
		synctest.Wait()
		if got := last.text(); !strings.HasPrefix(got, "event: page\ndata: <ul") || strings.Count(got, "event: page\n") != 1 || !strings.HasSuffix(got, "\n\n") || strings.Contains(got, "drained") {
			t.Errorf("at once %q", got)
		}
		if err := g.SetDrained("a:1", true); err != nil {
			t.Fatal(err)
		}
		leaving.leave()
		failing.mu.Lock()
		failing.gone = true
		failing.mu.Unlock()
		time.Sleep(5*time.Second + time.Nanosecond)
		synctest.Wait()
		if got := last.text(); strings.Count(got, "event: page\n") != 2 || !strings.Contains(got, "drained") || running.Load() != 1 {
			t.Errorf("%d run, after an interval %q", running.Load(), got)
		}
		p.Close()
		p.Close()
		ended.Wait()
	})
}

// There are no more streams than Options say, and a stream that has ended makes room. A closed page has none.
func TestMaxStreams(t *testing.T) {
	leaktest.Check(t)
	p := newPage(t, statuspage.Options{MaxStreams: 2})
	defer p.Close()
	addr := wiretest.Serve(t, p)
	const request = "GET /?events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	var clients []*wiretest.Peer
	for range 2 {
		client := wiretest.Dial(t, addr)
		client.Send(request)
		client.Receive("HTTP/1.1 200 OK\r\n")
		clients = append(clients, client)
	}
	if resp, _ := exchange(t, addr, request); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("the third: %s %v", resp.Status, resp.Header)
	}
	clients[0].Conn.Close()
	for { // the server notices it a moment later
		client := wiretest.Dial(t, addr)
		client.Send(request)
		if strings.HasPrefix(client.Header(), "HTTP/1.1 200 OK\r\n") {
			clients[0] = client
			break
		}
		client.Conn.Close()
	}
	p.Close()
	for _, client := range clients {
		client.Ended()
	}
	if resp, _ := exchange(t, addr, request); resp.StatusCode != 503 {
		t.Errorf("of a closed page: %s", resp.Status)
	}
}

// A client that reads nothing loses its stream, and other clients notice nothing of it.
func TestStalledClient(t *testing.T) {
	for name, serve := range map[string]func(net.Listener, http.Handler) func() error{
		"net/http": func(l net.Listener, h http.Handler) func() error {
			s := &http.Server{Handler: h}
			go s.Serve(l)
			return s.Close
		},
		"culvert": func(l net.Listener, h http.Handler) func() error {
			s := &server.Server{Handler: h}
			go s.Serve(l)
			return s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPage(t, statuspage.Options{})
				ended := make(chan time.Duration, 1)
				near, far := net.Pipe()
				defer near.Close()
				stop := serve(wiretest.OneConn(far), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					start := time.Now()
					p.ServeHTTP(w, r)
					ended <- time.Since(start)
				}))
				defer stop()
				if _, err := near.Write([]byte("GET /?events HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
					t.Fatal(err)
				}
				if took := <-ended; took < 10*time.Second || took > 13*time.Second {
					t.Errorf("the stream ended after %v", took)
				}
			})
		})
	}
}

// A server's WriteTimeout, which bounds a whole response, does not end a stream whose client reads.
func TestStreamOutlivesWriteTimeout(t *testing.T) {
	for name, serve := range map[string]func(net.Listener, http.Handler) func() error{
		"net/http": func(l net.Listener, h http.Handler) func() error {
			s := &http.Server{Handler: h, WriteTimeout: 3 * time.Second}
			go s.Serve(l)
			return s.Close
		},
		"culvert": func(l net.Listener, h http.Handler) func() error {
			s := &server.Server{Handler: h, WriteTimeout: 3 * time.Second}
			go s.Serve(l)
			return s.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer near.Close()
				defer serve(wiretest.OneConn(far), newPage(t, statuspage.Options{}))()
				client := wiretest.NewPeer(t, near)
				_ = near.SetDeadline(time.Time{})
				client.Send("GET /?events HTTP/1.1\r\nHost: a\r\n\r\n")
				client.Header()
				for events := 0; events < 60; {
					line, err := client.R.ReadString('\n')
					if err != nil {
						t.Fatalf("after %d events: %v", events, err)
					}
					if line == "event: page\n" {
						events++
					}
				}
			})
		})
	}
}

// A client that reads nothing of a short response, which the server writes when the handler has returned, is not waited for
// either.
func TestUnreadResponseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		s := &http.Server{Handler: newPage(t, statuspage.Options{})}
		go s.Serve(wiretest.OneConn(far))
		defer s.Close()
		if _, err := near.Write([]byte("GET /?style HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if rest, err := io.ReadAll(near); len(rest) > 0 || err != nil {
			t.Errorf("after a minute the response %q, %v", rest, err)
		}
	})
}
