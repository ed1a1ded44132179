package nginx_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
)

// file returns what is in a file of the site, "" if there is none.
func (s *site) file(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(content)
}

// Reopen behind Close opens nothing: the check for leaks would find it.
func TestReopenBehindClose(t *testing.T) {
	s := load(t, "server { listen 127.0.0.1:1; access_log access.log; }")
	s.Close()
	for _, name := range []string{"access.log", "error.log"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Reopen(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"access.log", "error.log"} {
		if _, err := os.Stat(filepath.Join(s.dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Requests that are completed under a former configuration, or while the server shuts down, are logged where the
// file has been opened again.
func TestReopenOfFormerConfigurations(t *testing.T) {
	for _, how := range []string{"Reload", "Shutdown"} {
		t.Run(how, func(t *testing.T) {
			target, requested, release := held(t)
			addr := wiretest.Free(t)
			s := load(t, "server { listen "+addr+"; access_log access.log; location / { proxy_pass http://"+target+"; } }")
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			client := wiretest.Dial(t, addr)
			client.Send("GET /held HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			wiretest.Await(t, requested, "the request")
			ended := make(chan error, 1)
			if how == "Reload" {
				s.write("server { listen " + addr + "; return 200 new; }")
				ended <- s.Reload()
			} else {
				go func() { ended <- s.Shutdown(t.Context()) }()
			}
			if err := os.Rename(filepath.Join(s.dir, "access.log"), filepath.Join(s.dir, "access.log.1")); err != nil {
				t.Fatal(err)
			}
			if err := s.Reopen(); err != nil {
				t.Error(err)
			}
			close(release)
			if _, body := client.Response("GET"); body != "held" {
				t.Errorf("got %q", body)
			}
			if err := wiretest.Await(t, ended, how); err != nil {
				t.Error(err)
			}
			s.Close()
			if got := s.file("access.log"); !strings.Contains(got, "GET /held") {
				t.Errorf("logged %q, and %q in the former file", got, s.file("access.log.1"))
			}
		})
	}
}

// The logger that a program keeps writes into the log of the current configuration.
func TestLoggerFollowsReload(t *testing.T) {
	s := load(t, "server { listen 127.0.0.1:1; }")
	plain, with := s.Logger(), s.Logger().With("key", "value").WithGroup("g")
	plain.Error("first")
	text := "error_log second.log warn;\nevents {}\nhttp { server { listen 127.0.0.1:1; } }\n"
	if err := os.WriteFile(filepath.Join(s.dir, "nginx.conf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	plain.Warn("second")
	with.Error("third")
	plain.Info("fourth")
	if got := s.file("error.log"); !strings.HasSuffix(got, ": first\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("the former log has %q", got)
	}
	if got := s.file("second.log"); !strings.Contains(got, ": second\n") || !strings.HasSuffix(got, ": third, key: value\n") {
		t.Errorf("the current log has %q", got)
	}
}

// alone is a writer that is not safe for concurrent use, as a bytes.Buffer is none.
type alone struct {
	inside   atomic.Int32
	together atomic.Bool
}

func (a *alone) Write(p []byte) (int, error) {
	if a.inside.Add(1) > 1 {
		a.together.Store(true)
	}
	runtime.Gosched()
	a.inside.Add(-1)
	return len(p), nil
}

// Options.Stderr is written to by one goroutine at a time, from all logs.
func TestStderrIsNotShared(t *testing.T) {
	leaktest.Check(t)
	var stderr alone
	s, err := nginx.New(nginx.Options{File: "/nginx.conf", Stderr: &stderr, ReadFile: func(string) ([]byte, error) {
		return []byte("error_log stderr; events {} http { access_log off; server { listen 127.0.0.1:1; } }"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := s.Logger()
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for range 100 {
				first.Error("text")
				runtime.Gosched()
			}
		})
	}
	for range 20 {
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		s.Logger().Error("text")
	}
	writing.Wait()
	if stderr.together.Load() {
		t.Error("two goroutines wrote at the same time")
	}
}

// Relative paths are those of the time of New, wherever the program goes later.
func TestRelativePathsAndChdir(t *testing.T) {
	leaktest.Check(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte("events {} http { access_log off; server { listen 127.0.0.1:1; } }"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	s, err := nginx.Load("nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Chdir(t.TempDir())
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
}
