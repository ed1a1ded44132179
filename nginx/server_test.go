package nginx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/conf"
)

// site is a server of the configuration nginx.conf in a directory of its own.
type site struct {
	*nginx.Server
	t      *testing.T
	dir    string
	stderr bytes.Buffer
}

// write writes a configuration with the lines in its http block.
func (s *site) write(http string) {
	s.t.Helper()
	text := "error_log error.log;\nevents {}\nhttp {\naccess_log off; default_type text/plain;\n" + http + "\n}\n"
	if err := os.WriteFile(filepath.Join(s.dir, "nginx.conf"), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// load returns the server of a configuration, which is not started.
func load(t *testing.T, http string) *site {
	t.Helper()
	leaktest.Check(t)
	s := &site{t: t, dir: t.TempDir()}
	s.write(http)
	s.load()
	return s
}

// load makes the server of the configuration that was written.
func (s *site) load() {
	s.t.Helper()
	var err error
	if s.Server, err = nginx.New(nginx.Options{Prefix: s.dir, File: "nginx.conf", Stderr: &s.stderr}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.Close() })
}

// start is load, and starts the server.
func (s *site) start() {
	s.t.Helper()
	s.load()
	if err := s.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// get requests a path on a connection of its own.
func get(t *testing.T, addr, path string) string {
	t.Helper()
	c := wiretest.Dial(t, addr)
	defer c.Close()
	c.Send("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	_, body := c.Response("GET")
	return body
}

func TestStartReloadShutdown(t *testing.T) {
	first, second := wiretest.Free(t), wiretest.Free(t)
	s := load(t, "server { listen "+first+"; return 200 old; }")
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("started twice")
	}
	if got := get(t, first, "/"); got != "old" {
		t.Errorf("got %q", got)
	}
	s.write("server { listen " + first + "; return 200 new; } server { listen " + second + "; return 200 second; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if a, b := get(t, first, "/"), get(t, second, "/"); a != "new" || b != "second" {
		t.Errorf("got %q and %q", a, b)
	}
	s.write("frobnicate on;")
	var wrong *conf.Error
	if err := s.Reload(); !errors.As(err, &wrong) || wrong.Line != 5 || !strings.Contains(wrong.What, "frobnicate") {
		t.Errorf("reloaded with %v", err)
	}
	if got := get(t, first, "/"); got != "new" {
		t.Errorf("got %q behind a configuration that does not load", got)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for _, addr := range []string{first, second} {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Errorf("%s accepts", addr)
		}
	}
	if err := s.Reload(); err != nginx.ErrClosed {
		t.Errorf("reloaded with %v", err)
	}
	if err := s.Start(); err != nginx.ErrClosed {
		t.Errorf("started with %v", err)
	}
}

// The log says when nothing is served by the former configuration any more.
func TestReloadEndIsLogged(t *testing.T) {
	addr := wiretest.Free(t)
	target, requested, release := held(t)
	s := load(t, "server { listen "+addr+"; location / { return 200 short; } location /held { proxy_pass http://"+target+"; } }")
	file := filepath.Join(s.dir, "nginx.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("error.log"), []byte("ended.log notice"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	client := wiretest.Dial(t, addr)
	client.Send("GET /held HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	wiretest.Await(t, requested, "the request")
	ended := func() bool {
		log, err := os.ReadFile(filepath.Join(s.dir, "ended.log"))
		return err == nil && strings.Contains(string(log), fmt.Sprintf("worker process %d exited with code 0", os.Getpid()))
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, addr, "/"); got != "short" || ended() {
		t.Errorf("got %q; the log says that the former configuration has ended: %t", got, ended())
	}
	release <- struct{}{}
	client.Response("GET")
	for deadline := time.Now().Add(time.Minute); !ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no line when it has ended")
		}
	}
}

func TestErrors(t *testing.T) {
	leaktest.Check(t)
	if _, err := nginx.Load(""); err == nil {
		t.Error("loaded nothing")
	}
	file := filepath.Join(t.TempDir(), "nginx.conf")
	if _, err := nginx.Load(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("loaded with %v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free := wiretest.Free(t)
	s := load(t, "server { listen "+free+"; listen "+taken.Addr().String()+"; return 200 a; }")
	if err := s.Start(); err == nil || !strings.Contains(err.Error(), "bind() to "+taken.Addr().String()+" failed (98: Address already in use)") {
		t.Errorf("started with %v", err)
	}
	l, err := net.Listen("tcp", free)
	if err != nil {
		t.Fatalf("the other address is bound still: %v", err)
	}
	l.Close()
	taken.Close()
	if err := s.Start(); err != nil { // a failed Start may be repeated
		t.Error(err)
	}
	if got := get(t, free, "/"); got != "a" {
		t.Errorf("got %q", got)
	}
}

// serveHandler serves the first listener's handler on a server of the program's own.
func serveHandler(t *testing.T, s *site) (addr string) {
	t.Helper()
	listeners := s.Listeners()
	if len(listeners) != 1 {
		t.Fatalf("%d listeners", len(listeners))
	}
	return wiretest.Serve(t, listeners[0].Handler)
}

func TestHandlerFollowsReload(t *testing.T) {
	s := load(t, "server { listen 127.0.0.1:1; location / { return 200 old; } location /tunnelled { return 200 $request_uri; } }")
	if l := s.Listeners()[0]; l.Network != "tcp4" || l.Address != "127.0.0.1:1" || l.TLS != nil || l.HTTP2 || l.ProxyProtocol {
		t.Errorf("listener %+v", l)
	}
	addr := serveHandler(t, s)
	if got := get(t, addr, "/tunnelled/a%2Fb?q"); got != "/tunnelled/a%2Fb?q" {
		t.Errorf("got %q", got)
	}
	s.write("server { listen 127.0.0.1:1; return 200 new; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, addr, "/"); got != "new" {
		t.Errorf("got %q", got)
	}
	status := func() int {
		c := wiretest.Dial(t, addr)
		defer c.Close()
		c.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		resp, _ := c.Response("GET")
		return resp.StatusCode
	}
	s.write("server { listen 127.0.0.1:2; return 200 moved; }")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("an address that is no longer configured: %d", got)
	}
	s.Close()
	if got := status(); got != http.StatusServiceUnavailable {
		t.Errorf("a closed server: %d", got)
	}
}

// No request of a program's own server is lost or refused while configurations follow one another.
func TestHandlerUnderReloads(t *testing.T) {
	s := load(t, "server { listen 127.0.0.1:1; return 200 generation; }")
	h := s.Listeners()[0].Handler
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				if w.Code != http.StatusOK || w.Body.String() != "generation" {
					t.Errorf("status %d, %q", w.Code, w.Body)
					return
				}
			}
		})
	}
	for range 50 {
		if err := s.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	clients.Wait()
}

// held is a target that holds its responses until release is closed.
func held(t *testing.T) (addr string, requested, release chan struct{}) {
	requested, release = make(chan struct{}, 8), make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested <- struct{}{}
		select {
		case <-release:
			_, _ = io.WriteString(w, "held")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(target.Close)
	return target.Listener.Addr().String(), requested, release
}

// Shutdown waits for requests, also for those of the program's own server; the end of its context, and Close, cut them.
func TestShutdownAndRunningRequests(t *testing.T) {
	for _, test := range []struct {
		name     string
		own, cut bool // a server of the program's own; what runs is cut
		end      func(s *site, cancel func())
	}{
		{"a request is waited for", false, false, nil},
		{"a request of the program's server is waited for", true, false, nil},
		{"the context ends", false, true, func(_ *site, cancel func()) { cancel() }},
		{"the context ends, the program's server", true, true, func(_ *site, cancel func()) { cancel() }},
		{"Close", false, true, func(s *site, _ func()) { s.Close() }},
		{"Close, the program's server", true, true, func(s *site, _ func()) { s.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			target, requested, release := held(t)
			addr := wiretest.Free(t)
			s := load(t, "server { listen "+addr+"; location / { proxy_pass http://"+target+"; } }")
			if test.own {
				addr = serveHandler(t, s)
			} else if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			client := wiretest.Dial(t, addr)
			client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			wiretest.Await(t, requested, "the request")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(ctx) }()
			if test.end != nil {
				test.end(s, cancel)
			} else {
				close(release)
			}
			err := wiretest.Await(t, ended, "the end of Shutdown")
			if (err != nil) != (ctx.Err() != nil) {
				t.Errorf("Shutdown returned %v", err)
			}
			if test.cut {
				if got := client.Ended(); strings.Contains(got, "held") {
					t.Errorf("the request got %q", got)
				}
				return
			}
			if _, body := client.Response("GET"); body != "held" {
				t.Errorf("the request got %q", body)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	leaktest.Check(t)
	names := []string{}
	s, err := nginx.New(nginx.Options{Prefix: "/conf", File: "main", Stderr: io.Discard, ReadFile: func(name string) ([]byte, error) {
		names = append(names, name)
		return []byte("events {} http { server { listen 127.0.0.1:1; ssl_conf_command a b; return 200 embedded; } }"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Body.String() != "embedded" || len(names) != 1 || names[0] != "/conf/main" {
		t.Errorf("got %q of %q", w.Body, names)
	}
}

func TestNotes(t *testing.T) {
	notes := nginx.Notes(nginx.Options{Prefix: "/conf", File: "main", ReadFile: func(string) ([]byte, error) {
		return []byte("events {}\nhttp {\n  ssl_conf_command a b;\n  frobnicate;\n}"), nil
	}})
	var lines []string
	for _, n := range notes {
		if n.Class == conf.Passed {
			lines = append(lines, n.String())
		}
	}
	if want := `"ssl_conf_command a b" is not followed: it is OpenSSL's in /conf/main:3`; len(lines) != 1 || lines[0] != want {
		t.Errorf("notes %q", lines)
	}
}

// Listen binds and accepts nothing: what has connected is served from Start on.
func TestListenBeforeStart(t *testing.T) {
	addr := wiretest.Free(t)
	s := load(t, "server { listen "+addr+"; listen unix:"+t.TempDir()+"/s; return 200 old; }")
	for range 2 { // the second call does nothing
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	early := wiretest.Dial(t, addr)
	early.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	s.write("server { listen " + addr + "; return 200 new; }")
	if err := s.Reload(); err != nil { // one in between keeps the socket
		t.Fatal(err)
	}
	if s.stderr.Len() != 0 {
		t.Errorf("before Start, standard error has %q", &s.stderr)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if _, body := early.Response("GET"); body != "new" {
		t.Errorf("got %q", body)
	}
	if err := s.Listen(); err == nil {
		t.Error("listened behind Start")
	}
	s.Close()
	if err := s.Listen(); err != nginx.ErrClosed {
		t.Errorf("listened with %v", err)
	}
}

// Close without Start releases what Listen has bound.
func TestListenAlone(t *testing.T) {
	addr, path := wiretest.Free(t), filepath.Join(t.TempDir(), "s")
	s := load(t, "server { listen "+addr+"; listen unix:"+path+"; return 200 a; }")
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unix socket's file: %v", err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
