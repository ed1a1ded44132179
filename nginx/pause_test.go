package nginx_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx"
)

// A paused Server completes what it has begun, and leaves what arrives to another process that has its sockets, until a Reload.
func TestPause(t *testing.T) {
	leaktest.Check(t)
	entered, release := make(chan struct{}), make(chan struct{})
	address := wiretest.Free(t)
	text := fmt.Sprintf("events {} http { access_log off; server { listen %s; location / { return 200 ours; } location /slow { culvert_handler slow; } } }", address)
	s, err := nginx.New(nginx.Options{
		File: "/f", Stderr: discard{}, ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
		Handlers: map[string]http.Handler{"slow": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			entered <- struct{}{}
			<-release
			fmt.Fprint(w, "slow")
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Pause() == nil {
		t.Error("a server is paused that was not started")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	slow := wiretest.Dial(t, address)
	slow.Send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-entered
	for range 2 {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	other := otherProcess(t, s)
	for range 20 {
		c := wiretest.Dial(t, address)
		taken, err := other.Accept()
		if err != nil {
			t.Fatal(err)
		}
		taken.Close()
		c.Close()
	}
	close(release)
	if _, body := slow.Response("GET"); body != "slow" {
		t.Errorf("the request that had begun: %q", body)
	}
	other.Close()
	for range 2 {
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if got := get(t, address, "/"); got != "ours" {
				t.Errorf("behind the reload: %q", got)
			}
		}
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Pause(); !errors.Is(err, nginx.ErrClosed) {
		t.Error(err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// otherProcess returns the listener of another process that has the Server's only socket.
func otherProcess(t *testing.T, s *nginx.Server) net.Listener {
	t.Helper()
	files, _, err := s.HandOver()
	if err != nil || len(files) != 1 {
		t.Fatal(len(files), err)
	}
	defer files[0].Close()
	other, err := net.FileListener(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return other
}
