package nginx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
)

// call is one of Server's methods, and what it returns by what was called before.
type call struct {
	name string
	do   func(s *site) error
	want func(bound, started, closed bool) (fails bool)
}

func calls() []call {
	never := func(_, _, _ bool) bool { return false }
	behindStart := func(_, started, closed bool) bool { return started || closed }
	return []call{
		{"Listen", func(s *site) error { return s.Listen() }, behindStart},
		{"Start", func(s *site) error { return s.Start() }, behindStart},
		{"Reload", func(s *site) error { return s.Reload() }, func(_, _, closed bool) bool { return closed }},
		{"Reopen", func(s *site) error { return s.Reopen() }, never},
		{"Listeners", func(s *site) error {
			w := httptest.NewRecorder()
			s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != http.StatusOK {
				return errors.New(http.StatusText(w.Code))
			}
			return nil
		}, func(_, _, closed bool) bool { return closed }},
		{"Shutdown", func(s *site) error { return s.Shutdown(context.Background()) }, never},
		{"Close", func(s *site) error { return s.Close() }, never},
	}
}

// Server's methods in every order of three, and Close: none panics or hangs, and nothing is left behind.
func TestEveryOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := load(t, "")
	http := "server { listen unix:" + path + "; access_log access.log; return 200 a; }"
	for _, first := range calls() {
		for _, second := range calls() {
			for _, third := range calls() {
				s.write(http)
				var err error
				if s.Server, err = nginx.New(nginx.Options{Prefix: s.dir, File: "nginx.conf", Stderr: io.Discard}); err != nil {
					t.Fatal(err)
				}
				var bound, started, closed bool
				for _, c := range []call{first, second, third} {
					if err := c.do(s); (err != nil) != c.want(bound, started, closed) {
						t.Errorf("%s of %s, %s, %s returned %v", c.name, first.name, second.name, third.name, err)
					}
					bound = bound || c.name == "Listen" || c.name == "Start"
					started = started || c.name == "Start"
					closed = closed || c.name == "Shutdown" || c.name == "Close"
				}
				s.Close()
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("behind %s, %s, %s the unix socket's file: %v", first.name, second.name, third.name, err)
				}
			}
		}
	}
}

// All of them at once.
func TestEverythingAtOnce(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "s")
		s := load(t, "server { listen unix:"+path+"; access_log access.log; return 200 a; }")
		var running sync.WaitGroup
		start := make(chan struct{})
		for _, c := range calls() {
			for range 3 {
				running.Go(func() {
					<-start
					_ = c.do(s)
				})
			}
		}
		close(start)
		running.Wait()
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the unix socket's file: %v", err)
		}
	}
}

// broken is a client that has gone in the worst way: its ResponseWriter panics.
type broken struct{ http.ResponseWriter }

func (broken) Write([]byte) (int, error) { panic(http.ErrAbortHandler) }
func (broken) WriteHeader(int)           { panic(http.ErrAbortHandler) }

// A handler that panics has ended.
func TestPanicInHandler(t *testing.T) {
	s := load(t, "limit_conn_zone $host zone=z:1m; server { listen 127.0.0.1:1; limit_conn z 1; try_files /none =204; }")
	h := s.Listeners()[0].Handler
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		h.ServeHTTP(broken{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusNoContent {
		t.Errorf("the next request: %d", w.Code)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A request may have the configuration reloaded that serves it, and the server closed.
func TestReloadAndCloseFromWithinARequest(t *testing.T) {
	addr := wiretest.Free(t)
	var s *site
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if r.URL.Path == "/close" {
			err = s.Close()
		} else {
			err = s.Reload()
		}
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "done")
	}))
	defer target.Close()
	s = load(t, "server { listen "+addr+"; location / { proxy_pass http://"+target.Listener.Addr().String()+"; } }")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := get(t, addr, "/reload"); got != "done" {
			t.Errorf("got %q", got)
		}
	}
	c := wiretest.Dial(t, addr)
	c.Send("GET /close HTTP/1.1\r\nHost: a\r\n\r\n")
	c.Ended()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Several Shutdowns and Closes end together, with the error of their own context each.
func TestEndsTogether(t *testing.T) {
	target, requested, _ := held(t)
	addr := wiretest.Free(t)
	s := load(t, "server { listen "+addr+"; location / { proxy_pass http://"+target+"; } }")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	c := wiretest.Dial(t, addr)
	c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	wiretest.Await(t, requested, "the request")
	patient, hasty := make(chan error, 2), make(chan error, 1)
	for range 2 {
		go func() { patient <- s.Shutdown(context.Background()) }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { hasty <- s.Shutdown(ctx) }()
	select {
	case err := <-patient:
		t.Fatalf("a Shutdown ended before the request with %v", err)
	default:
	}
	cancel()
	if err := wiretest.Await(t, hasty, "the Shutdown that was cut short"); !errors.Is(err, context.Canceled) {
		t.Errorf("it returned %v", err)
	}
	for range 2 {
		if err := wiretest.Await(t, patient, "a Shutdown"); err != nil {
			t.Errorf("it returned %v", err)
		}
	}
}

// A request that no net/http server has read has no RequestURI: http.NewRequest's goes by its URL.
func TestRequestWithoutRequestURI(t *testing.T) {
	s := load(t, "server { listen 127.0.0.1:1; location /a { return 200 $request_uri; } }")
	r, err := http.NewRequest(http.MethodGet, "http://a/a%2Fb?q=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.Listeners()[0].Handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "/a%2Fb?q=1" {
		t.Errorf("status %d, %q", w.Code, w.Body)
	}
}
